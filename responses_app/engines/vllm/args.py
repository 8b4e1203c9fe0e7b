"""Makes a vLLM engine of a model and the options of an engine URL."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from dataclasses import fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NoReturn

QUIET = {
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "VLLM_LOGGING_LEVEL": "WARNING",
    # Said at the end of the process about the shared memory of a worker that had to be killed; it is freed all the same.
    "PYTHONWARNINGS": "ignore:resource_tracker:UserWarning",
}

# Forked children would not bear the mark by which the guard knows them, and may inherit locks that are held.
SPAWN = {"VLLM_WORKER_MULTIPROC_METHOD": "spawn"}

# The one function that vLLM compiles in eager mode counts the ranks of log-probabilities. Inductor takes up to a minute for it, in the
# middle of the first request that asks for them, and all other requests wait. Without compilation the function is as fast on a CPU.
NO_COMPILATION = ("TORCH_COMPILE_DISABLE", "1")

CPU_KV_CACHE_GIB = "1"
CPU_MAX_MODEL_LEN = 8192  # Models name up to a million tokens; a machine without a GPU would wait for them forever.

YES, NO = ("", "1", "true", "yes", "on"), ("0", "false", "no", "off")


class InvalidEngineOption(ValueError):
    """An option that vLLM does not know, or a value that it does not take."""


def load(model: str, options: Mapping[str, str]) -> Any:
    """A running AsyncLLM, with its core in child processes. Blocks for 15 s and more. Raises BadOption, or what vLLM raises."""
    set_env(model)
    from vllm.v1.engine.async_llm import AsyncLLM

    return AsyncLLM.from_engine_args(engine_args(model, options))


def set_env(model: str) -> None:
    """Put into the environment what vLLM reads there and nobody has decided on. Before vLLM is imported."""
    for name, value in (QUIET | SPAWN | _offline(model)).items():
        os.environ.setdefault(name, value)


def starts_concurrently(options: Mapping[str, str]) -> bool:
    """Whether other engines may start while one with these options waits for the core that it has started.

    On a GPU vLLM measures how much memory is free and takes it for its own doing. With data parallelism more cores follow.
    """
    from vllm.platforms import current_platform

    return bool(current_platform.is_cpu()) and not any(name.startswith("data_parallel") for name in options)


def engine_args(model: str, options: Mapping[str, str]) -> Any:
    """vLLM's AsyncEngineArgs: our defaults, then the options, each converted as `vllm serve` converts its flags."""
    from vllm.engine.arg_utils import AsyncEngineArgs

    return AsyncEngineArgs(**engine_fields(model, options))


def engine_fields(model: str, options: Mapping[str, str]) -> dict[str, Any]:
    """The fields of AsyncEngineArgs that are not left to vLLM. Raises BadOption."""
    given = _parse(options)
    return {"model": model} | _defaults(model, given) | given


def _defaults(model: str, given: Mapping[str, Any]) -> dict[str, Any]:
    from vllm.platforms import current_platform

    defaults: dict[str, Any] = {
        # The border has priorities; vLLM refuses them under its own default, first come first served.
        "scheduling_policy": "priority",
        # Left to itself vLLM lets the first constraint that xgrammar refuses choose another backend for all that follow.
        "structured_outputs_config": {"backend": "xgrammar"},
        "disable_log_stats": True,
    }
    if current_platform.is_cpu():
        os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", CPU_KV_CACHE_GIB)
        defaults |= {"enforce_eager": True} | ({} if "max_model_len" in given else _length(model))
        if given.get("enforce_eager", True):
            os.environ.setdefault(*NO_COMPILATION)
    return defaults


def _length(model: str) -> dict[str, int]:
    """A bound for the context of models that name a longer one."""
    from vllm.transformers_utils.config import get_config

    config = get_config(model, trust_remote_code=False).get_text_config()
    named = getattr(config, "max_position_embeddings", None)
    return {"max_model_len": CPU_MAX_MODEL_LEN} if isinstance(named, int) and named > CPU_MAX_MODEL_LEN else {}


def _offline(model: str) -> dict[str, str]:
    """A model on disk needs no hub, and asking for one costs minutes where there is none.

    It is said for the whole process: who has other models too sets HF_HUB_OFFLINE before, as `bin/serve` does.
    """
    return {"HF_HUB_OFFLINE": "1"} if Path(model).exists() else {}


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise InvalidEngineOption(message)


def _parse(options: Mapping[str, str]) -> dict[str, Any]:
    from vllm.engine.arg_utils import AsyncEngineArgs
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    parser = AsyncEngineArgs.add_cli_args(type("_Strict", (_Parser, FlexibleArgumentParser), {})(exit_on_error=False))
    known = {field.name for field in fields(AsyncEngineArgs)} - {"model"}
    actions = {action.dest: action for action in parser._actions if action.dest in known}
    return {name: _convert(parser, actions, name, value) for name, value in options.items()}


def _convert(parser: Any, actions: Mapping[str, argparse.Action], name: str, value: str) -> Any:
    if name not in actions:
        raise InvalidEngineOption(_unknown(name, set(actions)))
    action = actions[name]
    if action.nargs == 0:  # A flag: some have a `--no-` twin, some can only be given. From a URL both can be said.
        if value.lower() not in YES + NO:
            raise InvalidEngineOption(f"{name} is either 1 or 0, got {value!r}")
        return value.lower() in YES
    try:
        return getattr(parser.parse_args([f"{max(action.option_strings, key=len)}={value}"]), name)
    except argparse.ArgumentError as error:
        raise InvalidEngineOption(str(error)) from error


def _unknown(name: str, known: set[str]) -> str:
    close = get_close_matches(name, known, n=3) or sorted(known)
    return (
        f"unknown option {name!r} in a vllm: engine URL; allowed are the fields of vLLM's AsyncEngineArgs: {', '.join(close)}"
    )
