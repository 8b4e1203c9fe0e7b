"""Import of PyTorch by transformers: no tokenizer needs it, and it takes seconds and 370 MB in each process."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import cast

from jinja2 import TemplateError

from responses_app.dialects.chat.template import ChatTemplate
from responses_app.dialects.checkpoint import Checkpoint
from responses_app.dialects.loading import ENCODERS, choose_template
from responses_app.dialects.registry import takes_images


def prevent_torch_import(models: Iterable[tuple[str, str | None]]) -> None:
    """Let the import of PyTorch fail in this process, as if it was not installed. For processes that run no engine.

    `models` are folders or hub names, each with its `chat_template` or None. Nothing is changed after the import of transformers, or
    if a model may need code of vLLM.
    """
    if sys.modules.keys() & {"torch", "transformers"} or any(_may_need_vllm(*model) for model in models):
        return
    # An import fails for a module that is None here: https://docs.python.org/3/reference/import.html#the-module-cache
    sys.modules["torch"] = cast(ModuleType, None)
    # transformers would log that PyTorch was not found.
    os.environ.setdefault("TRANSFORMERS_NO_ADVISORY_WARNINGS", "1")


def _may_need_vllm(source: str, chat_template: str | None) -> bool:
    """Return True for models with a prompt encoder or an image placeholder of vLLM, and for models that cannot be read."""
    folder = _folder(source)
    if folder is None:
        return True
    try:
        checkpoint = Checkpoint(str(folder), chat_template)
        if checkpoint.config.get("model_type") in ENCODERS:
            return True
        template = ChatTemplate(choose_template(source, checkpoint.chat_templates()), {})
        return template.image is None and takes_images(checkpoint)
    except (OSError, ValueError, TemplateError):
        return True


def _folder(source: str) -> Path | None:
    """Find the folder of a model without transformers, for a hub name in the cache."""
    if (Path(source) / "config.json").is_file():
        return Path(source)
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        cached = try_to_load_from_cache(source, "config.json")
    except HFValidationError:
        return None
    return Path(cached).parent if isinstance(cached, str) else None
