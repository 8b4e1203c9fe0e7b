"""Families of Llama and Mistral."""

from __future__ import annotations

from typing import Any

from tests.support.dialects.families.call_fragments import ARGUMENTS, NAME, around, described, json_call, python_call
from tests.support.dialects.families.family_format import FamilyFormat, literal, turns

_JSON_CALLS = 'Respond in the format {"name": function name, "parameters": dictionary of argument name and its value}.'
_PYTHON_CALLS = "Respond in the format [func_name1(params_name1=params_value1), func_name2(params)]."
PYTHONIC: dict[str, Any] = {
    "tools": described(_PYTHON_CALLS),
    "call": python_call(),
    "calls": ("[", ", ", "]"),
    "takes_text_with_calls": False,
}


def _llama(name: str, **more: Any) -> FamilyFormat:
    """Create a format with the turns of Llama 3."""
    defaults: dict[str, Any] = {
        "model_type": "llama",
        "bos": "<|begin_of_text|>",
        "eos": "<|eot_id|>",
        **turns("<|start_header_id|>ROLE<|end_header_id|>\n\n", "<|eot_id|>", tool="ipython"),
        "opening": "<|start_header_id|>assistant<|end_header_id|>\n\n",
        "tools": described(_JSON_CALLS),
        "call": json_call(key="parameters"),
        "has_parallel_calls": False,
        "takes_text_with_calls": False,
        "unlisted": ("<|start_header_id|>", "<|end_header_id|>", "<|python_tag|>", "<|eom_id|>", "<|end_of_text|>"),
    }
    return FamilyFormat(name=name, **{**defaults, **more})


def _mistral(name: str, model_type: str, **more: Any) -> FamilyFormat:
    """Create a format with the turns of Mistral."""
    defaults: dict[str, Any] = {
        "bos": "<s>",
        "eos": "</s>",
        "system": ("[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]"),
        "user": ("[INST]", "[/INST]"),
        "assistant": ("", "</s>"),
        "tool": ("[TOOL_RESULTS]", "[/TOOL_RESULTS]"),
        "opening": "",
        "tools": around("[AVAILABLE_TOOLS]", "{{- tools | tojson }}", "[/AVAILABLE_TOOLS]"),
        "call": around("[TOOL_CALLS]", f"{NAME}{literal('[ARGS]')}{ARGUMENTS}", ""),
        "text_before_calls": "",
        "special": ("<unk>",),
        "unlisted": (
            "[INST]", "[/INST]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]",
            "[TOOL_CALLS]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[ARGS]", "[CALL_ID]",
        ),
    }  # fmt: skip
    return FamilyFormat(name=name, model_type=model_type, **{**defaults, **more})


_OLD_MARKS = (
    "[INST]", "[/INST]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]", "[TOOL_CALLS]",
)  # fmt: skip
_REASONING_MARKS = (*_OLD_MARKS, "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[ARGS]", "[CALL_ID]", "[THINK]", "[/THINK]")
_CALL_ID = "{{- call.id[:9] }}"

FORMATS = (
    _llama("llama-3.1"),
    _llama("llama-3.2"),
    _llama("llama-3.3"),
    _llama("llama-3.2-pythonic", **{**PYTHONIC, "has_parallel_calls": True}),
    _llama(
        "llama-4",
        **{
            **PYTHONIC,
            "model_type": "llama4",
            "has_parallel_calls": True,
            "eos": "<|eot|>",
            **turns("<|header_start|>ROLE<|header_end|>\n\n", "<|eot|>", tool="ipython"),
            "opening": "<|header_start|>assistant<|header_end|>\n\n",
            "unlisted": ("<|header_start|>", "<|header_end|>", "<|python_start|>", "<|python_end|>", "<|eom|>"),
        },
    ),
    _mistral(
        "mistral-nemo",
        "mistral",
        system=None,
        call=json_call(),
        calls=("[TOOL_CALLS][", ", ", "]"),
        unlisted=_OLD_MARKS,
    ),
    _mistral(
        "mistral-small-3.2",
        "mistral3",
        call=around("[TOOL_CALLS]", f"{NAME}{literal('[CALL_ID]')}{_CALL_ID}{literal('[ARGS]')}{ARGUMENTS}", ""),
    ),
    _mistral("devstral", "mistral"),
    _mistral(
        "ministral-3-reasoning",
        "mistral3",
        reasoning=("[THINK]", "[/THINK]"),
        has_optional_reasoning=True,
        unlisted=_REASONING_MARKS,
    ),
)
