"""Families of Gemma."""

from __future__ import annotations

from typing import Any

from tests.support.dialects.families.call_fragments import NAME, around, described
from tests.support.dialects.families.family_format import FamilyFormat, turns
from tests.support.dialects.families.formats.llama_mistral import PYTHONIC


def _gemma(name: str, model_type: str, **more: Any) -> FamilyFormat:
    """Create a format with the turns of Gemma."""
    defaults: dict[str, Any] = {
        "bos": "<bos>",
        "eos": "<end_of_turn>",
        "user": ("<start_of_turn>user\n", "<end_of_turn>\n"),
        "assistant": ("<start_of_turn>model\n", "<end_of_turn>\n"),
        "opening": "<start_of_turn>model\n",
        "special": ("<pad>", "<eos>"),
        "unlisted": ("<start_of_turn>",),
    }
    return FamilyFormat(name=name, model_type=model_type, **{**defaults, **more})


def _braces(quote: str, items: str = "value.items()") -> str:
    """Write the arguments as `{key:value,…}`, strings within `quote`; `items` are the keys and values of a mapping."""
    return (
        "{%- macro write(value) %}"
        "{%- if value is mapping %}{{- '{' }}{%- for key, each in " + items + " %}"
        "{{- key }}{{- ':' }}{{- write(each) }}{%- if not loop.last %}{{- ',' }}{%- endif %}{%- endfor %}{{- '}' }}"
        f"{{%- elif value is string %}}{{{{- '{quote}' ~ value ~ '{quote}' }}}}"
        "{%- elif value is boolean or value is number %}{{- value | tojson }}"
        "{%- else %}{{- '[' }}{%- for each in value %}{{- write(each) }}{%- if not loop.last %}{{- ',' }}{%- endif %}"
        "{%- endfor %}{{- ']' }}{%- endif %}{%- endmacro %}{{- write(call.function.arguments) }}"
    )


FORMATS = (
    _gemma("gemma-2", "gemma2"),
    _gemma("gemma-3", "gemma3"),
    _gemma("gemma-3-pythonic", "gemma3", **PYTHONIC),
    _gemma(
        "functiongemma",
        "gemma3_text",
        system=("<start_of_turn>developer\n", "<end_of_turn>\n"),
        tool=("<start_function_response>", "<end_function_response>"),
        tools=described("<start_function_call>call:name{key:<escape>value<escape>}<end_function_call>"),
        call=around("<start_function_call>call:", NAME + _braces("<escape>"), "<end_function_call>"),
        plain=("<start_function_call>", "<end_function_call>", "<start_function_response>", "<end_function_response>", "<escape>"),
    ),
    _gemma(
        "gemma-4",
        "gemma4",
        eos="<turn|>",
        **turns("<|turn>ROLE\n", "<turn|>\n", assistant="model", tool=("<|tool_response>", "<tool_response|>")),
        opening="<|turn>model\n",
        quiet_opening="<|turn>model\n<|channel>thought\n<channel|>",
        reasoning=("<|channel>thought\n", "<channel|>"),
        has_optional_reasoning=True,
        tools=described("<|tool>declaration<tool|>"),
        call=around("<|tool_call>call:", NAME + _braces('<|"|>', "value | dictsort"), "<tool_call|>"),
        text_before_calls="",
        special=("<pad>", "<eos>"),
        unlisted=(
            "<|turn>", "<|channel>", "<channel|>", "<|tool_call>", "<tool_call|>", "<|tool_response>", "<tool_response|>",
            "<|tool>", "<tool|>", '<|"|>',
        ),
    ),
)  # fmt: skip
