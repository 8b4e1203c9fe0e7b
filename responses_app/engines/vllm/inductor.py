"""Imports of vLLM without Inductor, PyTorch's compiler, in processes that compile nothing: a third less CPU time for each start.

vLLM imports Inductor to change it, and `torch.compile` imports it to choose a backend, whether something is compiled later or not.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Final

from responses_app.utils import imports

# In eager mode vLLM compiles one function only, which ranks log-probabilities. Inductor takes up to a minute for it, during the
# first request that needs it, and blocks all other requests. Uncompiled it is as fast on a CPU.
NO_COMPILATION: Final = ("TORCH_COMPILE_DISABLE", "1")
# First module of vLLM that imports torch, and the module that it imports to change Inductor; vLLM goes on where that is absent.
FIRST_MODULE: Final = "vllm.env_override"
LOWERING: Final = "torch._inductor.lowering"


def skip_inductor() -> None:
    """Have the coming import of vLLM leave out Inductor, unless this PyTorch is for a GPU.

    Without effect behind the import. Call it in processes that compile nothing: a process that runs AsyncLLM or parses options, and
    a core with NO_COMPILATION.
    """
    if FIRST_MODULE not in sys.modules and not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


def prepare_spawned_process() -> None:
    """Set up a process that `multiprocessing` has spawned, which may import vLLM next."""
    imports.collect_rarely()
    if os.environ.get(NO_COMPILATION[0]) == NO_COMPILATION[1]:
        skip_inductor()


def return_unchanged(model: Any = None, **_options: Any) -> Any:
    """Return `model` uncompiled (replaces `torch.compile`), or with options alone a decorator."""
    return model if model is not None else return_unchanged


class _Finder(MetaPathFinder):
    """Finder of FIRST_MODULE, which removes itself and gives the module a loader without Inductor."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Find FIRST_MODULE only (overrides MetaPathFinder)."""
        del path, target
        if name != FIRST_MODULE:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            _execute_without_inductor(spec.loader)
        return spec


def _execute_without_inductor(loader: Loader) -> None:
    """Wrap the execution of the loader's module."""
    execute: Callable[[ModuleType], None] = loader.exec_module

    def execute_without_inductor(module: ModuleType) -> None:
        import torch

        if torch.version.cuda or torch.version.hip or LOWERING in sys.modules:
            execute(module)
            return
        torch.compile = return_unchanged
        # The import of such a module raises ModuleNotFoundError.
        sys.modules[LOWERING] = None  # type: ignore[assignment]
        try:
            execute(module)
        finally:
            del sys.modules[LOWERING]

    loader.exec_module = execute_without_inductor  # type: ignore[method-assign]
