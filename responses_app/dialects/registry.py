"""Dialect registry: harmony for gpt-oss, the model's own chat template for all other models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from responses_app.dialects.base import Dialect
from responses_app.dialects.chat.template import ChatTemplate
from responses_app.dialects.checkpoint import Checkpoint
from responses_app.dialects.families.detection import Detection
from responses_app.dialects.families.installed import (
    HARMONY_REASONING_PARSER,
    HARMONY_TOOL_PARSER,
    OWN_REASONING_PARSERS,
    OWN_TOOL_PARSERS,
)

if TYPE_CHECKING:
    from responses_app.dialects.chat.prompt import ImagePlaceholder

# `config.json` keys whose presence means that the model accepts images.
_IMAGE_KEYS = ("vision_config", "image_token_id", "image_token_index")


def open_dialect(source: str, *, reasoning_parser: str | None = None, tool_parser: str | None = None) -> Dialect:
    """Create the dialect of the checkpoint folder or hub name `source`.

    Named parsers, as in vLLM, replace the detected parsers, each separately; `none` stands for no parser. Raises ValueError
    if the model has no chat template or no fast tokenizer, or a parser is unknown, OSError if the model cannot be read.
    """
    checkpoint = Checkpoint(source)
    return open_checkpoint(checkpoint, checkpoint.detect_family(reasoning_parser, tool_parser))


def open_checkpoint(checkpoint: Checkpoint, family: Detection) -> Dialect:
    """Create the dialect of a checkpoint with the parsers of `family`. Raises ValueError, OSError."""
    is_harmony = (family.reasoning_parser, family.tool_parser) == (HARMONY_REASONING_PARSER, HARMONY_TOOL_PARSER)
    if is_harmony and checkpoint.config.get("model_type") == "gpt_oss":
        from responses_app.dialects.harmony.dialect import HarmonyDialect

        return HarmonyDialect()
    return _open_chat(checkpoint, family.reasoning_parser, family.tool_parser)


def _open_chat(checkpoint: Checkpoint, reasoning_parser: str | None, tool_parser: str | None) -> Dialect:
    from transformers import AutoTokenizer

    from responses_app.dialects.chat.dialect import ChatDialect
    from responses_app.dialects.chat.scanner import MARKERS
    from responses_app.dialects.text.tokenizer import TokenizerAdapter

    tokenizer = AutoTokenizer.from_pretrained(checkpoint.source)
    if not tokenizer.is_fast:
        raise ValueError(f"{checkpoint.source} has no fast tokenizer (tokenizer.json).")
    template = _template(checkpoint.source, tokenizer)
    stops = sorted(_stop_ids(checkpoint, tokenizer))
    config = checkpoint.config
    supports_images = any(config.get(key) is not None for key in _IMAGE_KEYS)
    image_placeholder = _image_placeholder(config) if supports_images and template.image is None else None
    if reasoning_parser in {None, *OWN_REASONING_PARSERS} and tool_parser in {None, *OWN_TOOL_PARSERS}:
        vocabulary = TokenizerAdapter(tokenizer.backend_tokenizer, visible=MARKERS)
        return ChatDialect(
            vocabulary,
            template,
            stops,
            always_thinks=reasoning_parser == "deepseek_r1",
            supports_images=supports_images,
            image_placeholder=image_placeholder,
        )
    from responses_app.dialects.vllm.adapters import ParserRegistry
    from responses_app.dialects.vllm.dialect import VllmDialect

    # vLLM's parsers search for special tokens of all kinds, in the text and by id.
    vocabulary = TokenizerAdapter(tokenizer.backend_tokenizer, visible=tokenizer.all_special_tokens)
    return VllmDialect(
        vocabulary,
        template,
        stops,
        ParserRegistry(tokenizer, reasoning_parser, tool_parser),
        supports_images=supports_images,
        image_placeholder=image_placeholder,
    )


def _template(source: str, tokenizer: Any) -> ChatTemplate:
    template = tokenizer.chat_template
    tokens = {name: str(token) for name, token in tokenizer.special_tokens_map.items() if isinstance(token, str)}
    if isinstance(template, dict):
        return ChatTemplate(template["default"], tokens, with_tools=template.get("tool_use"))
    if not template:
        raise ValueError(f"{source} has no chat template.")
    return ChatTemplate(template, tokens)


def _image_placeholder(config: Mapping[str, Any]) -> ImagePlaceholder | None:
    """Return vLLM's image placeholder function of the model, for text-only templates; None without placeholder."""
    from vllm.model_executor.models.registry import ModelRegistry

    known = (ModelRegistry.models.get(name) for name in config.get("architectures") or ())
    for model in filter(None, known):
        placeholder = getattr(model.load_model_cls(), "get_placeholder_str", None)
        if placeholder is not None and placeholder("image", 1):
            return lambda number: str(placeholder("image", number))
    return None


def _stop_ids(checkpoint: Checkpoint, tokenizer: Any) -> set[int]:
    """Return all ids that end a turn, from tokenizer, model configuration and generation configuration."""
    configs = (checkpoint.config, checkpoint.generation_config)
    named = (tokenizer.eos_token_id, *(config.get("eos_token_id") for config in configs))
    return {token for value in named for token in _ids(value)}


def _ids(value: object) -> Iterator[int]:
    if isinstance(value, int):
        yield value
    elif isinstance(value, list):
        yield from value
