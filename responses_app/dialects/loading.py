"""Loading of the tokenizer and the chat template of a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from jinja2 import TemplateSyntaxError

from responses_app.dialects.chat.template import ChatTemplate
from responses_app.dialects.checkpoint import Checkpoint

# Models without a chat template, and the prompt encoders of vLLM for these models: module and function by `model_type`.
ENCODERS = {
    name: (f"vllm.tokenizers.{name}", f"get_{name}_tokenizer") for name in ("deepseek_v32", "deepseek_v4", "deepseek_v41")
}
_TEKKEN_TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}
# Efforts of reasoning that the encoders distinguish.
_ENCODER_EFFORTS = {"deepseek_v4": ("low", "high", "max"), "deepseek_v41": ("low", "high", "xhigh", "max")}
# The comment shows the markers of the prompt, and the efforts, to readers of templates.
_ENCODER_TEMPLATE = "{{#- <think> </think> {efforts} -#}}{{{{ encode(messages, tools, thinking{variable}) }}}}"


def load_tokenizer(checkpoint: Checkpoint) -> Any:
    """Load the tokenizer without running code of the checkpoint. Raises ValueError, OSError."""
    has_code = _has_code(checkpoint)
    if checkpoint.path("tokenizer.json") is None:
        if (tekken := checkpoint.path("tekken.json")) is not None:
            return _tekken_tokenizer(tekken)
        if has_code:
            raise ValueError(
                f"The tokenizer of {checkpoint.source} is Python code (auto_map in tokenizer_config.json), and the code of a model "
                "is not run. Add a tokenizer.json to the model, or name a folder that has one with tokenizer= in the engine URL."
            )
    from transformers import AutoTokenizer, PreTrainedTokenizerFast

    if has_code:
        return PreTrainedTokenizerFast.from_pretrained(checkpoint.source)
    tokenizer = AutoTokenizer.from_pretrained(checkpoint.source, trust_remote_code=False, mistral_format=False)
    if not tokenizer.is_fast:
        raise ValueError(f"{checkpoint.source} has no fast tokenizer (tokenizer.json).")
    return tokenizer


def load_template(checkpoint: Checkpoint, tokenizer: Any) -> ChatTemplate:
    """Load the chat template, for Mistral and DeepSeek models without a template an equivalent. Raises ValueError, OSError."""
    tokens = {name: str(token) for name, token in tokenizer.special_tokens_map.items() if isinstance(token, str)}
    templates = checkpoint.chat_templates()
    if templates:
        try:
            return ChatTemplate(choose_template(checkpoint.source, templates), tokens, with_tools=templates.get("tool_use"))
        except TemplateSyntaxError as error:
            raise ValueError(
                f"The chat template of {checkpoint.source} cannot be read, line {error.lineno}: {error.message}. Correct the template, "
                "or name a file with another: --chat-template FILE, or chat_template=FILE in the engine URL."
            ) from error
    if (tekken := checkpoint.path("tekken.json")) is not None:
        return ChatTemplate(_tekken_template(tekken), tokens)
    model_type = str(checkpoint.config.get("model_type"))
    if (encoder := ENCODERS.get(model_type)) is not None:
        return _encoder_template(tokenizer, *encoder, _ENCODER_EFFORTS.get(model_type, ()))
    raise ValueError(
        f"{checkpoint.source} has no chat template, as models that only continue text. Choose the model made for chats (often -Instruct, "
        "-it or -chat), or name a file with a template: --chat-template FILE, or chat_template=FILE in the engine URL."
    )


def _has_code(checkpoint: Checkpoint) -> bool:
    """Return True if the class of the tokenizer is Python code of the checkpoint."""
    auto_map = checkpoint.tokenizer_config.get("auto_map")
    return bool(auto_map.get("AutoTokenizer") if isinstance(auto_map, Mapping) else auto_map)


def choose_template(source: str, templates: Mapping[str, str]) -> str:
    """Choose the template of chats among those of a model by name. Raises ValueError if there is no default."""
    if "default" in templates:
        return templates["default"]
    if len(templates) == 1:
        return next(iter(templates.values()))
    raise ValueError(
        f"{source} has several chat templates and no default: {', '.join(sorted(templates))}. "
        "Name one of them: chat_template=NAME in the engine URL."
    )


def _tekken_tokenizer(file: Path) -> Any:
    """Convert the vocabulary of Mistral's format `tekken`."""
    from transformers import PreTrainedTokenizerFast
    from transformers.integrations.mistral.tokenizer import MistralConverter

    backend = MistralConverter(str(file)).converted()
    return PreTrainedTokenizerFast(tokenizer_object=backend, **_TEKKEN_TOKENS)


def _tekken_template(file: Path) -> str:
    """Generate the chat template of the tokenizer version that a tekken.json names."""
    from mistral_common.integrations.chat_templates.chat_templates import convert_tokenizer_to_chat_template

    return str(convert_tokenizer_to_chat_template(file))


def _encoder_template(tokenizer: Any, module: str, function: str, efforts: Sequence[str]) -> ChatTemplate:
    """Create a chat template that calls a prompt encoder of vLLM, with the effort of reasoning if it knows `efforts`."""
    encoder = getattr(import_module(module), function)(tokenizer)

    def encode(messages: list[Any], tools: list[Any] | None, thinking: bool, effort: object = None) -> str:
        variables = {"reasoning_effort": effort} if effort in efforts else {}
        return str(encoder.apply_chat_template(messages, tools, thinking=thinking, tokenize=False, **variables))

    variable = ", reasoning_effort" if efforts else ""
    source = _ENCODER_TEMPLATE.format(efforts=" ".join(f'"{each}"' for each in efforts), variable=variable)
    return ChatTemplate(source, {"encode": encode})
