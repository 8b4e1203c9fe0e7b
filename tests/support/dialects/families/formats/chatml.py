"""Families with ChatML turns, and calls as JSON in `<tool_call>`."""

from __future__ import annotations

from typing import Any

from tests.support.dialects.families.call_fragments import described, function_xml, json_call
from tests.support.dialects.families.family_format import FamilyFormat, turns

_MARKS = ("<tool_call>", "</tool_call>")
_THINK_MARKS = ("<think>", "</think>")
_RESPONSE_MARKS = ("<tool_response>", "</tool_response>")


def _chatml(name: str, model_type: str, **more: Any) -> FamilyFormat:
    """Create a format with ChatML turns and Hermes calls."""
    defaults: dict[str, Any] = {
        **turns(
            "<|im_start|>ROLE\n", "<|im_end|>\n", tool=("<|im_start|>user\n<tool_response>\n", "\n</tool_response><|im_end|>\n")
        ),
        "opening": "<|im_start|>assistant\n",
        "eos": "<|im_end|>",
        "tools": described("Tools in <tools></tools>, a call in <tool_call></tool_call>:"),
        "call": json_call("<tool_call>\n", "\n</tool_call>"),
        "calls": ("", "\n", ""),
        "separates_calls": True,
        "special": ("<|endoftext|>", "<|im_start|>"),
        "plain": (*_MARKS, *_RESPONSE_MARKS),
    }
    return FamilyFormat(name=name, model_type=model_type, **{**defaults, **more})


_THOUGHT: dict[str, Any] = {
    "reasoning": ("<think>\n", "\n</think>\n\n"),
    "plain": (*_MARKS, *_RESPONSE_MARKS, *_THINK_MARKS),
}
_OPENED: dict[str, Any] = {
    **_THOUGHT,
    "opening": "<|im_start|>assistant\n<think>\n",
    "reasoning": ("", "\n</think>\n\n"),
    "history": ("<think>\n", "\n</think>\n\n"),
}
_QUIET = {"quiet_opening": "<|im_start|>assistant\n<think>\n\n</think>\n\n"}
_FREE: dict[str, Any] = {**_THOUGHT, **_QUIET, "has_optional_reasoning": True}
_XML: dict[str, Any] = {
    "tools": described("Calls: <tool_call>\n<function=name>\n<parameter=key>\nvalue\n</parameter>\n</function>\n</tool_call>"),
    "call": function_xml(),
}

FORMATS = (
    _chatml("qwen3", "qwen3", **_FREE),
    _chatml("qwen3-instruct-2507", "qwen3_moe"),
    _chatml("qwen2.5", "qwen2"),
    _chatml("qwq", "qwen2", **_OPENED),
    _chatml("hermes-2-pro", "mistral", bos="<s>", plain=()),
    _chatml(
        "hermes-3",
        "llama",
        bos="<|begin_of_text|>",
        special=("<|end_of_text|>", "<|im_start|>"),
        plain=(),
    ),
    _chatml("smollm3", "smollm3", **{**_FREE, "plain": _THINK_MARKS, "unlisted": ("<|im_start|>",), "special": ()}),
    _chatml("mimo-7b", "mimo", **_FREE),
    _chatml(
        "granite-4",
        "granitemoehybrid",
        **turns(
            "<|start_of_role|>ROLE<|end_of_role|>",
            "<|end_of_text|>\n",
            tool=("<|start_of_role|>user<|end_of_role|>\n<tool_response>\n", "\n</tool_response><|end_of_text|>\n"),
        ),
        opening="<|start_of_role|>assistant<|end_of_role|>",
        eos="<|end_of_text|>",
        special=("<|start_of_role|>", "<|end_of_role|>"),
    ),
    _chatml("qwen3-coder", "qwen3_moe", **_XML),
    _chatml("qwen3.5", "qwen3_5", **{**_OPENED, **_QUIET, **_XML}),
    _chatml("nemotron-3", "nemotron_h", **{**_OPENED, **_QUIET, **_XML, "special": ("<|im_start|>",), "unlisted": ("<s>",)}),
    _chatml("step-3.5", "step3p5", **{**_OPENED, **_XML, "reasoning": ("", "\n</think>\n")}),
    _chatml("trinity", "afmoe", **{**_OPENED, **_XML}),
    _chatml(
        "mimo-v2.5",
        "mimo_v2",
        **{
            **_FREE,
            **_XML,
            "call": function_xml(line_break=""),
            "reasoning": ("<think>", "</think>"),
            "quiet_opening": "<|im_start|>assistant\n<think></think>",
        },
    ),
)
