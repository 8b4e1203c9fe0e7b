"""Families of 2026 and others with rare forms: GigaChat 3.5, Solar Open, IQuest, openPangu, CWM, RWKV, Functionary, Apriel."""

from __future__ import annotations

from typing import Any

from tests.support.dialects.families.call_fragments import ARGUMENTS, NAME, around, described, json_call, tagged_call
from tests.support.dialects.families.family_format import FamilyFormat, literal, turns
from tests.support.dialects.families.formats.deepseek import dsml_call

_THINK_MARKS = ("<think>", "</think>")
_CHATML: dict[str, Any] = {
    "eos": "<|im_end|>",
    **turns("<|im_start|>ROLE\n", "<|im_end|>\n"),
    "opening": "<|im_start|>assistant\n<think>\n",
    "reasoning": ("", "\n</think>\n\n"),
    "history": ("<think>\n", "\n</think>\n\n"),
    "special": ("<|im_start|>",),
}
_OPEN_PANGU: dict[str, Any] = {
    "tools": described('<|tool_call_start|>[{"name": name, "arguments": {}}]<|tool_call_end|>'),
    "call": json_call(),
    "calls": ("<|tool_call_start|>[", ", ", "]<|tool_call_end|>"),
}
_LLAMA_TURNS: dict[str, Any] = {
    "eos": "<|eot_id|>",
    **turns("<|start_header_id|>ROLE<|end_header_id|>\n\n", "<|eot_id|>"),
    "special": ("<|start_header_id|>", "<|end_header_id|>"),
}

FORMATS = (
    FamilyFormat(
        name="gigachat-3.5",
        model_type="deepseek_v3",
        bos="<s>",
        eos="<|message_sep|>",
        **turns("ROLE<|role_sep|>\n", "<|message_sep|>\n\n", tool="function result"),
        opening="assistant<|role_sep|>\n",
        reasoning=("<think>", "</think>\n\n"),
        has_optional_reasoning=True,
        tools=described("<｜GCML｜tool_calls>"),
        call=dsml_call("GCML"),
        calls=("<｜GCML｜tool_calls>\n", "", "</｜GCML｜tool_calls>"),
        special=("<|role_sep|>",),
        plain=("｜GCML｜", *_THINK_MARKS),
    ),
    FamilyFormat(
        name="solar-open",
        model_type="solar_open",
        eos="<|flush|>",
        **turns(
            "<|begin|>ROLE<|content|>",
            "<|end|>",
            assistant=("<|begin|>assistant", "<|flush|>"),
            tool=("<|begin|>tool<|tool_response|>", "<|end|>"),
        ),
        opening="<|begin|>assistant",
        reasoning=("<|think|>", "<|end|><|begin|>assistant"),
        has_optional_reasoning=True,
        answer=("<|content|>", "<|end|><|begin|>assistant"),
        text_before_calls="",
        tools=described("<|tool_calls|>"),
        call=around(
            "<|tool_call:begin|>",
            f"{{{{- call.id }}}}{literal('<|tool_call:name|>')}{NAME}{literal('<|tool_call:args|>')}{ARGUMENTS}",
            "<|tool_call:end|>",
        ),
        calls=("<|tool_calls|>", "", ""),
        special=("<|begin|>", "<|end|>", "<|content|>", "<|think|>", "<|tool_calls|>", "<|calls|>"),
        unlisted=("<|tool_call:begin|>", "<|tool_call:name|>", "<|tool_call:args|>", "<|tool_call:end|>"),
    ),
    FamilyFormat(
        name="solar-open-2",
        model_type="solar_open2",
        eos="<|im:end|>",
        **turns(
            "<|im:start|>ROLE<|im:content|>",
            "<|im:end|>",
            tool=("<|im:start|>tool<|im:content|><|tool_response:start|>", "<|tool_response:end|><|im:end|>"),
        ),
        opening="<|im:start|>assistant<|im:content|><|think:start|>",
        quiet_opening="<|im:start|>assistant<|im:content|><|think:start|><|think:end|>",
        reasoning=("", "<|think:end|>"),
        history=("<|think:start|>", "<|think:end|>"),
        tools=described("<|tool_call:start|>name"),
        call=tagged_call(
            "<|tool_call:start|>",
            "\n",
            ("<|tool_arg:start|>", "<|tool_arg:value|>", "<|tool_arg:end|>\n"),
            "<|tool_call:end|>",
        ),
        separates_calls=True,
        special=("<|im:start|>", "<|im:content|>", "<|think:start|>", "<|think:end|>"),
        unlisted=(
            "<|tool_call:start|>",
            "<|tool_call:end|>",
            "<|tool_arg:start|>",
            "<|tool_arg:value|>",
            "<|tool_arg:end|>",
            "<|tool_response:start|>",
            "<|tool_response:end|>",
        ),
    ),
    FamilyFormat(
        name="iquest-q1",
        model_type="iquest_q1",
        eos="<|iquest_end|>",
        **turns("<|iquest_ROLE|>", "<|iquest_end|>"),
        opening="<|iquest_assistant|><think>",
        quiet_opening="<|iquest_assistant|><think></think>",
        reasoning=("", "</think>"),
        history=("<think>", "</think>"),
        tools=described("<iquest_tool_call>name<arg_key>key</arg_key><arg_value>value</arg_value></iquest_tool_call>"),
        call=tagged_call(
            "<iquest_tool_call>", "", ("<arg_key>", "</arg_key><arg_value>", "</arg_value>"), "</iquest_tool_call>"
        ),
        separates_calls=True,
        special=("<|iquest_system|>", "<|iquest_user|>", "<|iquest_assistant|>", "<|iquest_tool|>"),
        plain=("<iquest_tool_call>", "</iquest_tool_call>", *_THINK_MARKS),
    ),
    FamilyFormat(name="openpangu-2", model_type="openpangu_v2", **_CHATML, **_OPEN_PANGU, unlisted=("<|tool_call_start|>",)),
    FamilyFormat(
        name="hyperclovax-14b",
        model_type="hyperclovax",
        eos="<|endofturn|>",
        **turns(
            "<|im_start|>ROLE\n",
            "<|im_end|>\n",
            assistant=("<|im_start|>assistant", "<|endofturn|>\n"),
            tool="tool/function_call",
        ),
        opening="<|im_start|>assistant",
        reasoning=("/think\n", "<|im_end|>\n<|im_start|>assistant"),
        has_optional_reasoning=True,
        answer=("\n", "<|im_end|>"),
        text_before_calls="\n<|im_start|>assistant",
        tools=described("<|im_start|>tool_list"),
        call=json_call(),
        calls=(" -> tool/function_call\n[", ", ", "]<|im_end|>"),
        special=("<|im_start|>", "<|im_end|>"),
    ),
    FamilyFormat(
        name="cwm",
        model_type="cwm",
        **_LLAMA_TURNS,
        opening="<|start_header_id|>assistant<|end_header_id|>\n\n<think>\n",
        reasoning=("", "\n</think>\n"),
        history=("<think>\n", "\n</think>\n"),
        tools=described("<tool: name>\nvalue\n</tool>"),
        call=around("<tool: ", f"{NAME}{literal('>' + chr(10))}{ARGUMENTS}", "\n</tool>"),
        calls=("", "\n", ""),
        separates_calls=True,
    ),
    FamilyFormat(
        name="rwkv",
        model_type="rwkv7",
        eos="<|rwkv_tokenizer_end_of_text|>",
        **turns(
            "ROLE: ",
            "\n\n",
            system="System",
            user="User",
            assistant=("Assistant: ", "<|rwkv_tokenizer_end_of_text|>\n\n"),
            tool="Tool",
        ),
        opening="Assistant:",
        tools=described("**Tool Call:**\n```json\n{}\n```"),
        call=json_call("**Tool Call:**\n```json\n", "\n```"),
        calls=("", "\n", ""),
        separates_calls=True,
    ),
    FamilyFormat(
        name="functionary-3.2",
        model_type="llama",
        **_LLAMA_TURNS,
        opening="<|start_header_id|>assistant<|end_header_id|>\n\n>>>",
        tools=described(">>>${recipient}\n${content}"),
        answer=(">>>all\n", ""),
        text_before_calls="",
        call=around(">>>", f"{NAME}{literal(chr(10))}{ARGUMENTS}", ""),
    ),
    FamilyFormat(
        name="apriel-1.6",
        model_type="pixtral",
        eos="<|end|>",
        **turns("<|begin_ROLE|>\n", "\n", assistant=("<|begin_assistant|>\n", "\n<|end|>\n"), tool="tool_result"),
        opening="<|begin_assistant|>\nHere are my reasoning steps:\n",
        reasoning=("", "\n[BEGIN FINAL RESPONSE]\n"),
        tools=described("<tool_calls>[]</tool_calls>"),
        call=json_call(),
        calls=("<tool_calls>[", ", ", "]</tool_calls>"),
        special=("<|begin_assistant|>",),
    ),
)
