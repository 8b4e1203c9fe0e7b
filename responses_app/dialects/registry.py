"""Finds the dialect of a model: harmony for gpt-oss, its own chat template for every other."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from responses_app.dialects.base import Dialect
from responses_app.dialects.chat.template import ChatTemplate

if TYPE_CHECKING:
    from responses_app.dialects.chat.prompt import ImagePlaceholder

# By one of these a model's configuration says that it takes images, whatever its family is called.
_SEES = ("vision_config", "image_token_id", "image_token_index")
# Parsers of vLLM whose formats our own scanner reads; any other pair goes through vLLM.
_OWN_REASONING = frozenset({None, "qwen3", "deepseek_r1"})
_OWN_TOOLS = frozenset({None, "hermes"})


def open_dialect(source: str, *, reasoning_parser: str | None = None, tool_parser: str | None = None) -> Dialect:
    """The dialect of the checkpoint folder or hub name `source`; the parsers are named as vLLM names them.

    Raises ValueError if the model has no chat template or no fast tokenizer, or a parser is unknown, OSError if the model cannot be read.
    """
    if _config(source, "config.json").get("model_type") == "gpt_oss":
        from responses_app.dialects.harmony.dialect import HarmonyDialect

        return HarmonyDialect()
    return _chat(source, reasoning_parser, tool_parser)


def _chat(source: str, reasoning_parser: str | None, tool_parser: str | None) -> Dialect:
    from transformers import AutoTokenizer

    from responses_app.dialects.chat.dialect import ChatDialect
    from responses_app.dialects.chat.scanner import MARKERS
    from responses_app.dialects.text.tokenizer import TokenizerAdapter

    tokenizer = AutoTokenizer.from_pretrained(source)
    if not tokenizer.is_fast:
        raise ValueError(f"{source} has no fast tokenizer (tokenizer.json).")
    template = _template(source, tokenizer)
    stops = sorted(_stops(source, tokenizer))
    config = _config(source, "config.json")
    supports_images = any(config.get(key) is not None for key in _SEES)
    spell = _spelled(config) if supports_images and template.image is None else None
    if reasoning_parser in _OWN_REASONING and tool_parser in _OWN_TOOLS:
        vocabulary = TokenizerAdapter(tokenizer.backend_tokenizer, visible=MARKERS)
        return ChatDialect(
            vocabulary,
            template,
            stops,
            always_thinks=reasoning_parser == "deepseek_r1",
            supports_images=supports_images,
            token_text=spell,
        )
    from responses_app.dialects.vllm.adapters import ParserRegistry
    from responses_app.dialects.vllm.dialect import VllmDialect

    # These parsers look for special tokens of all kinds, in the text and by id.
    vocabulary = TokenizerAdapter(tokenizer.backend_tokenizer, visible=tokenizer.all_special_tokens)
    return VllmDialect(
        vocabulary,
        template,
        stops,
        ParserRegistry(tokenizer, reasoning_parser, tool_parser),
        supports_images=supports_images,
        spell=spell,
    )


def _template(source: str, tokenizer: Any) -> ChatTemplate:
    template = tokenizer.chat_template
    tokens = {name: str(token) for name, token in tokenizer.special_tokens_map.items() if isinstance(token, str)}
    if isinstance(template, dict):
        return ChatTemplate(template["default"], tokens, with_tools=template.get("tool_use"))
    if not template:
        raise ValueError(f"{source} has no chat template.")
    return ChatTemplate(template, tokens)


def _spelled(config: Mapping[str, Any]) -> ImagePlaceholder | None:
    """What vLLM would write for an image, as it does where a template takes strings only; None if it knows nothing of the kind."""
    from vllm.model_executor.models.registry import ModelRegistry

    known = (ModelRegistry.models.get(name) for name in config.get("architectures") or ())
    for model in filter(None, known):
        spell = getattr(model.load_model_cls(), "get_placeholder_str", None)
        if spell is not None and spell("image", 1):
            return lambda number: str(spell("image", number))
    return None


def _stops(source: str, tokenizer: Any) -> set[int]:
    """Every id that ends a turn, by the tokenizer, the model's configuration or its generation configuration."""
    named = (
        tokenizer.eos_token_id,
        *(_config(source, file).get("eos_token_id") for file in ("config.json", "generation_config.json")),
    )
    return {token for each in named for token in _ids(each)}


def _ids(value: object) -> Iterator[int]:
    if isinstance(value, int):
        yield value
    elif isinstance(value, list):
        yield from value


def _config(source: str, file: str) -> dict[str, Any]:
    """A JSON file of the model; empty if it has none. Files of a folder are read without transformers, which loads for seconds."""
    folder = Path(source)
    if folder.is_dir():
        path = folder / file
    else:
        from transformers.utils import cached_file

        found = cached_file(source, file, _raise_exceptions_for_missing_entries=False)
        if found is None:
            return {}
        path = Path(found)
    return dict(json.loads(path.read_text())) if path.is_file() else {}
