"""Families with calls as XML elements of their own: MiniMax, Seed-OSS, GLM, Ling, Laguna."""

from __future__ import annotations

from typing import Any

from tests.support.dialects.families.call_fragments import NAME, around, described, function_xml, tagged_call
from tests.support.dialects.families.family_format import FamilyFormat, turns

_GLM_MARKS = ("<tool_call>", "</tool_call>", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>", "<think>", "</think>")


def _glm(name: str, model_type: str, **more: Any) -> FamilyFormat:
    """Create a format with the turns and calls of GLM."""
    defaults: dict[str, Any] = {
        "bos": "[gMASK]<sop>",
        "eos": "<|user|>",
        **turns("<|ROLE|>\n", "", tool=("<|observation|>\n<tool_response>\n", "\n</tool_response>")),
        "opening": "<|assistant|>",
        "quiet_opening": "<|assistant|>\n<think></think>",
        "reasoning": ("\n<think>", "</think>\n"),
        "history": ("<think>", "</think>\n"),
        "tools": described("<tool_call>{function-name}\n<arg_key>{arg-key}</arg_key>\n<arg_value>{arg-value}</arg_value>"),
        "call": tagged_call("\n<tool_call>", "\n", ("<arg_key>", "</arg_key>\n<arg_value>", "</arg_value>\n"), "</tool_call>"),
        "separates_calls": True,
        "special": ("<|endoftext|>", "<|system|>", "<|assistant|>", "<|observation|>"),
        "plain": (*_GLM_MARKS, "<tool_response>", "</tool_response>"),
    }
    return FamilyFormat(name=name, model_type=model_type, **{**defaults, **more})


_CLOSED_UP: dict[str, Any] = {
    "tools": described("<tool_call>{function-name}<arg_key>{arg-key}</arg_key><arg_value>{arg-value}</arg_value></tool_call>"),
    "call": tagged_call("<tool_call>", "", ("<arg_key>", "</arg_key><arg_value>", "</arg_value>"), "</tool_call>"),
    "opening": "<|assistant|><think>",
    "quiet_opening": "<|assistant|></think>",
    "reasoning": ("", "</think>"),
    "history": ("<think>", "</think>"),
    "text_before_calls": "",
}
_M3 = "]<]minimax[>["
# Writes a value as elements: the keys of an object, or `item` for the elements of a list.
_ELEMENTS = (
    "{%- macro write(key, value) %}{{- '" + _M3 + "<' ~ key ~ '>' }}"
    "{%- if value is mapping %}{%- for name, each in value.items() %}{{- write(name, each) }}{%- endfor %}"
    "{%- elif value is string %}{{- value }}"
    "{%- elif value is iterable %}{%- for each in value %}{{- write('item', each) }}{%- endfor %}"
    "{%- else %}{{- value | tojson }}{%- endif %}{{- '" + _M3 + "</' ~ key ~ '>' }}{%- endmacro %}"
    "{%- for key, value in call.function.arguments.items() %}{{- write(key, value) }}{%- endfor %}"
)
_INVOKE = tagged_call('<invoke name="', '">\n', ('<parameter name="', '">', "</parameter>\n"), "</invoke>\n")

FORMATS = (
    _glm("glm-4.6", "glm4_moe"),
    _glm("glm-4.7", "glm4_moe", **_CLOSED_UP),
    _glm("glm-4.7-flash", "glm4_moe_lite", **_CLOSED_UP),
    _glm(
        "ling-3",
        "bailing_moe",
        **{
            **_CLOSED_UP,
            "bos": "",
            "eos": "<|role_end|>",
            **turns(
                "<role>ROLE</role>", "<|role_end|>", system="SYSTEM", user="HUMAN", assistant="ASSISTANT", tool="OBSERVATION"
            ),
            "opening": "<role>ASSISTANT</role><think>\n",
            "quiet_opening": "<role>ASSISTANT</role><think>\n\n</think>\n\n",
            "reasoning": ("", "\n</think>\n\n"),
            "special": ("<|startoftext|>", "<|endoftext|>"),
        },
    ),
    _glm(
        "laguna",
        "laguna",
        bos="",
        eos="</assistant>",
        **turns("<ROLE>\n", "\n</ROLE>\n", tool="tool_response"),
        opening="<assistant>\n<think>",
        quiet_opening="<assistant>\n</think>",
        reasoning=("", "</think>\n"),
        special=("<assistant>", "<system>", "</system>", "<user>", "</user>"),
    ),
    FamilyFormat(
        name="minimax-m2",
        model_type="minimax_m2",
        bos="]~!b[",
        eos="[e~[",
        **turns("]~b]ROLE\n", "[e~[\n", assistant="ai", tool=("]~b]tool\n<response>", "</response>[e~[\n")),
        opening="]~b]ai\n<think>\n",
        reasoning=("", "\n</think>\n\n"),
        history=("<think>\n", "\n</think>\n\n"),
        tools=described('<minimax:tool_call>\n<invoke name="name">\n<parameter name="key">value</parameter>\n</invoke>'),
        calls=("<minimax:tool_call>\n", "", "</minimax:tool_call>"),
        call=_INVOKE,
        special=("]~b]", "]!p~["),
        plain=("<minimax:tool_call>", "</minimax:tool_call>", "<think>", "</think>"),
    ),
    FamilyFormat(
        name="minimax-m3",
        model_type="minimax_m3_vl",
        bos="]~!b[",
        eos="[e~[",
        **turns("]~b]ROLE\n", "[e~[\n", assistant="ai", tool=("]~b]tool\n<response>", "</response>[e~[\n")),
        opening="]~b]ai\n",
        reasoning=("<mm:think>", "</mm:think>"),
        has_optional_reasoning=True,
        tools=described(f'{_M3}<tool_call>\n{_M3}<invoke name="name">{_M3}</invoke>\n{_M3}</tool_call>'),
        calls=(f"{_M3}<tool_call>\n", "", f"{_M3}</tool_call>"),
        call=f"{around(f'{_M3}<invoke name={chr(34)}', NAME, f'{chr(34)}>')}{_ELEMENTS}{around('', '', f'{_M3}</invoke>' + chr(10))}",
        special=("]~b]", "]!p~["),
        plain=(_M3, "<mm:think>", "</mm:think>"),
    ),
    FamilyFormat(
        name="seed-oss",
        model_type="seed_oss",
        bos="<seed:bos>",
        eos="<seed:eos>",
        **turns("<seed:bos>ROLE\n", "<seed:eos>"),
        opening="<seed:bos>assistant\n",
        reasoning=("<seed:think>", "</seed:think>"),
        tools=described("<seed:tool_call>\n<function=name>\n<parameter=key>value</parameter>\n</function>\n</seed:tool_call>"),
        call=function_xml("<seed:tool_call>\n", "\n</seed:tool_call>", line_break=""),
        calls=("", "\n", ""),
        separates_calls=True,
        special=("<seed:pad>",),
        plain=("<seed:think>", "</seed:think>", "<seed:tool_call>", "</seed:tool_call>"),
    ),
)
