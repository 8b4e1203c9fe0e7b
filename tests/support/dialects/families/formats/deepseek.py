"""Families of DeepSeek and Moonshot: calls between special tokens."""

from __future__ import annotations

from typing import Any

from tests.support.dialects.families.call_fragments import ARGUMENTS, NAME, around, described
from tests.support.dialects.families.family_format import FamilyFormat, literal, turns

_THINK_MARKS = ("<think>", "</think>")
_TURNS = ("<｜User｜>", "<｜Assistant｜>")
_CALL_MARKS = (
    "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>", "<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>", "<｜tool▁sep｜>",
    "<｜tool▁outputs▁begin｜>", "<｜tool▁outputs▁end｜>", "<｜tool▁output▁begin｜>", "<｜tool▁output▁end｜>",
)  # fmt: skip


def _deepseek(name: str, model_type: str, **more: Any) -> FamilyFormat:
    """Create a format with the turns of DeepSeek."""
    defaults: dict[str, Any] = {
        "bos": "<｜begin▁of▁sentence｜>",
        "eos": "<｜end▁of▁sentence｜>",
        "system": ("", "\n"),
        "user": ("<｜User｜>", ""),
        "assistant": ("<｜Assistant｜>", "<｜end▁of▁sentence｜>"),
        "tool": ("<｜tool▁output▁begin｜>", "<｜tool▁output▁end｜>"),
        "opening": "<｜Assistant｜>",
        "calls": ("<｜tool▁calls▁begin｜>", "", "<｜tool▁calls▁end｜>"),
        "text_before_calls": "",
        "plain": (*_TURNS, *_CALL_MARKS, *_THINK_MARKS),
    }
    return FamilyFormat(name=name, model_type=model_type, **{**defaults, **more})


_JSON_BLOCK: dict[str, Any] = {
    "tools": described("<｜tool▁call▁begin｜>function<｜tool▁sep｜>name\n```json\n{}\n```<｜tool▁call▁end｜>"),
    "call": around(
        "<｜tool▁call▁begin｜>function<｜tool▁sep｜>",
        f"{NAME}{literal(chr(10) + '```json' + chr(10))}{ARGUMENTS}",
        "\n```<｜tool▁call▁end｜>",
    ),
    "calls": ("<｜tool▁calls▁begin｜>", "\n", "<｜tool▁calls▁end｜>"),
}
_PLAIN_JSON: dict[str, Any] = {
    "tools": described(
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>name<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
    ),
    "call": around("<｜tool▁call▁begin｜>", f"{NAME}{literal('<｜tool▁sep｜>')}{ARGUMENTS}", "<｜tool▁call▁end｜>"),
}
_OPENED: dict[str, Any] = {
    "opening": "<｜Assistant｜><think>\n",
    "reasoning": ("", "\n</think>\n\n"),
    "history": ("<think>\n", "\n</think>\n\n"),
}
_SWITCHED: dict[str, Any] = {
    "opening": "<｜Assistant｜><think>",
    "quiet_opening": "<｜Assistant｜></think>",
    "reasoning": ("", "</think>"),
    "history": ("<think>", "</think>"),
}


def dsml_call(mark: str, space: str = "") -> str:
    """Write a call as elements with `mark` and `space` before their names."""
    start, end = f"<｜{mark}｜{space}", f"</｜{mark}｜{space}"
    parameter = (
        "{%- for key, value in call.function.arguments.items() %}"
        f"{literal(start + 'parameter name=' + chr(34))}{{{{- key }}}}{literal(chr(34) + ' string=' + chr(34))}"
        f"{{{{- 'true' if value is string else 'false' }}}}{literal(chr(34) + '>')}"
        "{{- value if value is string else value | tojson }}" + literal(f"{end}parameter>\n") + "{%- endfor %}"
    )
    head = around(start + "invoke name=" + chr(34), NAME, chr(34) + ">" + chr(10))
    return f"{head}{parameter}{literal(end + 'invoke>' + chr(10))}"


def _dsml(word: str, space: str = "") -> dict[str, Any]:
    """Return the calls in DSML within `word`, and `space` after the marker."""
    start, end = f"<｜DSML｜{space}", f"</｜DSML｜{space}"
    return {
        "tools": described(f"{start}{word}>"),
        "call": dsml_call("DSML", space),
        "calls": (f"\n\n{start}{word}>\n", "", f"{end}{word}>"),
        "plain": (*_TURNS, *_THINK_MARKS, "｜DSML｜"),
        "tool": ("\n<function_results>\n<result>", "</result>\n</function_results>"),
    }


def _kimi(name: str, model_type: str, **more: Any) -> FamilyFormat:
    """Create a format with the turns and calls of Kimi-K2."""
    call_id = "{{- 'functions.' ~ call.function.name ~ ':' ~ loop.index0 }}"
    defaults: dict[str, Any] = {
        "bos": "",
        "eos": "<|im_end|>",
        **turns("<|im_ROLE|>ROLE<|im_middle|>", "<|im_end|>", tool=("<|im_system|>tool<|im_middle|>", "<|im_end|>")),
        "opening": "<|im_assistant|>assistant<|im_middle|>",
        "tools": around("<|im_system|>tool_declare<|im_middle|>", "{{- tools | tojson }}", "<|im_end|>"),
        "call": around(
            "<|tool_call_begin|>", call_id + literal("<|tool_call_argument_begin|>") + ARGUMENTS, "<|tool_call_end|>"
        ),
        "calls": ("<|tool_calls_section_begin|>", "", "<|tool_calls_section_end|>"),
        "text_before_calls": "",
        "special": ("<|im_system|>", "<|im_user|>", "<|im_assistant|>", "<|im_middle|>"),
        "plain": (
            "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>", "<|tool_call_begin|>", "<|tool_call_end|>",
            "<|tool_call_argument_begin|>", *_THINK_MARKS,
        ),
    }  # fmt: skip
    return FamilyFormat(name=name, model_type=model_type, **{**defaults, **more})


FORMATS = (
    _deepseek("r1-distill-qwen", "qwen2", **{**_JSON_BLOCK, **_OPENED, "history": ("", "</think>")}),
    _deepseek("r1-distill-llama", "llama", **{**_JSON_BLOCK, **_OPENED, "history": ("", "</think>")}),
    _deepseek("deepseek-r1-0528", "deepseek_v3", **{**_JSON_BLOCK, "reasoning": ("<think>\n", "\n</think>\n\n")}),
    _deepseek("deepseek-v3-0324", "deepseek_v3", **_JSON_BLOCK),
    _deepseek("deepseek-v3.1", "deepseek_v3", **{**_PLAIN_JSON, **_SWITCHED}),
    _deepseek("deepseek-v3.2", "deepseek_v32", **{**_SWITCHED, **_dsml("function_calls")}),
    _deepseek("deepseek-v4", "deepseek_v4", **{**_SWITCHED, **_dsml("tool_calls")}),
    _deepseek("deepseek-v4.1", "deepseek_v41", **{**_SWITCHED, **_dsml("calls", " ")}),
    _kimi("kimi-k2", "kimi_k2"),
    _kimi("kimi-k2-thinking", "kimi_k2", reasoning=("<think>", "</think>")),
)
