"""Dialect registry: harmony for gpt-oss, the model's own chat template for all other models."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from responses_app.dialects.base import Dialect
from responses_app.dialects.chat.template import ChatTemplate
from responses_app.dialects.checkpoint import Checkpoint
from responses_app.dialects.families.detection import Detection
from responses_app.dialects.families.format_choice import FormatChoice, choose_format
from responses_app.dialects.families.parser_names import HARMONY_REASONING_PARSER, HARMONY_TOOL_PARSER
from responses_app.dialects.families.unread_output import SpecialTokens
from responses_app.dialects.formats.base import OutputFormat
from responses_app.dialects.formats.table import THINK_FORMAT
from responses_app.dialects.formats.variants import fit_to_tokens
from responses_app.dialects.loading import load_template, load_tokenizer

if TYPE_CHECKING:
    from responses_app.dialects.chat.prompt import ImagePlaceholder
    from responses_app.dialects.text.tokenizer import TokenizerAdapter

# `config.json` keys whose presence means that the model accepts images.
_IMAGE_KEYS = ("vision_config", "image_token_id", "image_token_index")


def open_checkpoint(checkpoint: Checkpoint, family: Detection) -> tuple[Dialect, Detection]:
    """Create the dialect of a checkpoint, and complete the detection `family`: the parsers must read what the template writes.

    Raises ValueError if the model has no chat template or no fast tokenizer, or a parser is unknown, OSError if the model cannot
    be read.
    """
    if family.by_template and _is_gpt_oss(checkpoint):
        # Harmony is what the response template of these models describes.
        names = {"reasoning_parser": HARMONY_REASONING_PARSER, "tool_parser": HARMONY_TOOL_PARSER}
        family = family.with_parsers({key: names[key] for key in family.by_template})
    if _is_harmony(checkpoint, family):
        from responses_app.dialects.harmony.dialect import HarmonyDialect

        return HarmonyDialect(), family
    return _open_chat(checkpoint, family)


def _is_harmony(checkpoint: Checkpoint, family: Detection) -> bool:
    """Return True for the parsers of harmony. Raises ValueError for one of these without the other, and for other models."""
    parsers = (family.reasoning_parser, family.tool_parser)
    if HARMONY_REASONING_PARSER not in parsers and HARMONY_TOOL_PARSER not in parsers:
        return False
    if parsers != (HARMONY_REASONING_PARSER, HARMONY_TOOL_PARSER) or not _is_gpt_oss(checkpoint):
        raise ValueError(
            f"reasoning_parser={parsers[0] or 'none'} and tool_parser={parsers[1] or 'none'} do not fit: {HARMONY_REASONING_PARSER} "
            f"and {HARMONY_TOOL_PARSER} are one format, for models with model_type gpt_oss. Name both, or two others."
        )
    return True


def _is_gpt_oss(checkpoint: Checkpoint) -> bool:
    config = checkpoint.config
    return config.get("model_type") == "gpt_oss" or "GptOssForCausalLM" in config.get("architectures", ())


def _open_chat(checkpoint: Checkpoint, family: Detection) -> tuple[Dialect, Detection]:
    tokenizer = load_tokenizer(checkpoint)
    template = load_template(checkpoint, tokenizer)
    supports_images = takes_images(checkpoint)
    parts = _Parts(
        tokenizer,
        template,
        sorted(_stop_ids(checkpoint, tokenizer)),
        supports_images,
        _image_placeholder(checkpoint.config) if supports_images and template.image is None else None,
    )
    choice = parts.choose(family, checkpoint.tokenizer_config.get("response_template"))
    return parts.dialect(choice.output, choice.detection.reasoning_parser), choice.detection


def takes_images(checkpoint: Checkpoint) -> bool:
    """Return True if config.json describes a model that takes images."""
    return any(checkpoint.config.get(key) is not None for key in _IMAGE_KEYS)


@dataclass(frozen=True)
class _Parts:
    """Parts that all chat dialects of a checkpoint share."""

    tokenizer: Any
    template: ChatTemplate
    stops: list[int]
    supports_images: bool
    image_placeholder: ImagePlaceholder | None

    def choose(self, family: Detection, response_template: object) -> FormatChoice:
        """Choose the output format that reads what the templates write. Raises ValueError."""
        decoder = self.tokenizer.backend_tokenizer.get_added_tokens_decoder()
        tokens = SpecialTokens(
            frozenset(token.content for token in decoder.values() if token.special),
            frozenset(decoder[stop].content for stop in self.stops if stop in decoder),
        )
        fit = partial(fit_to_tokens, added_tokens=self._added_tokens())
        return choose_format(self.template, family, tokens, fit, response_template)

    def dialect(self, output: OutputFormat, reasoning_parser: str | None) -> Dialect:
        from responses_app.dialects.chat.dialect import ChatDialect

        return ChatDialect(
            # A marker may be several tokens.
            self._vocabulary({token for token in self._added_tokens() if any(token in marker for marker in output.markers)}),
            self.template,
            self.stops,
            output,
            always_thinks=self._always_thinks(reasoning_parser),
            may_think=reasoning_parser is not None or self._has_token_of_reasoning(output),
            supports_images=self.supports_images,
            image_placeholder=self.image_placeholder,
        )

    def _has_token_of_reasoning(self, output: OutputFormat) -> bool:
        """Return True if the tokenizer has the marker of reasoning, also where the template does not show the reasoning."""
        return output.reasoning is not None and output.reasoning.begins[0] in self._added_tokens()

    def _vocabulary(self, visible: Collection[str]) -> TokenizerAdapter:
        from responses_app.dialects.text.tokenizer import TokenizerAdapter

        return TokenizerAdapter(self.tokenizer.backend_tokenizer, visible=visible)

    def _added_tokens(self) -> frozenset[str]:
        return frozenset(token.content for token in self.tokenizer.backend_tokenizer.get_added_tokens_decoder().values())

    def _always_thinks(self, reasoning_parser: str | None) -> bool:
        """Return True for models that reason although no template of theirs shows it."""
        return reasoning_parser == "deepseek_r1" and THINK_FORMAT.begins[0] not in self.template.source


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
    configs = {"config.json": checkpoint.config, "generation_config.json": checkpoint.generation_config}
    named = {file: config.get("eos_token_id") for file, config in configs.items()}
    ids = {token for file, value in named.items() for token in _ids(value, f"{file} of {checkpoint.source}")}
    return ids if tokenizer.eos_token_id is None else {tokenizer.eos_token_id, *ids}


def _ids(value: object, file: str) -> Iterator[int]:
    """Yield the ids of an `eos_token_id`: a number or a list of numbers. Raises ValueError, which names `file`."""
    for token in value if isinstance(value, list) else [] if value is None else [value]:
        if type(token) is not int:
            raise ValueError(f"{file} has the eos_token_id {value!r}, in place of ids of tokens: correct the file.")
        yield token
