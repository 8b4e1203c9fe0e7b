"""Output formats by the names of vLLM's reasoning parsers and tool parsers."""

from __future__ import annotations

from dataclasses import replace

from responses_app.dialects.constraints.structural_tag import Format, literal, one_of, regex
from responses_app.dialects.formats.base import CallFormat, OutputFormat, ReasoningFormat
from responses_app.dialects.formats.call_formats import (
    deepseek_calls,
    dsml_calls,
    element_calls,
    gemma_calls,
    inkling_calls,
    internlm_calls,
    invoke_calls,
    json_list_calls,
    json_object_calls,
    keyed_xml_calls,
    kimi_calls,
    kimi_k3_calls,
    minicpm_calls,
    muse_calls,
    plamo_calls,
    python_calls,
    rwkv_calls,
    solar2_calls,
    solar_calls,
    step3_calls,
    xml_calls,
)
from responses_app.dialects.formats.syntaxes.addressed_calls import RecipientCalls, ToolTagCalls
from responses_app.dialects.formats.syntaxes.json_calls import JsonCalls, KeyedCalls
from responses_app.dialects.formats.syntaxes.named_calls import MistralCalls, NamedCalls
from responses_app.dialects.formats.syntaxes.python_calls import PythonCalls
from responses_app.dialects.formats.xml_syntaxes.keyed_xml_calls import KeyedXmlCalls
from responses_app.dialects.formats.xml_syntaxes.nested_xml_calls import NestedXmlCalls
from responses_app.dialects.formats.xml_syntaxes.xml_calls import XmlCalls

THINK_FORMAT = ReasoningFormat(("<think>",), ("</think>",))
DEFAULT_CALLS = CallFormat(
    JsonCalls("<tool_call>\n", "\n</tool_call>", "", ("</tool_call>",), is_block=False),
    ("<tool_call>",),
    ("</tool_call>",),
    always_constrained=True,
)
HERMES_PARSERS = frozenset({"ernie45", "hermes", "qwen3_json", "granite4"})
# Format of a model about which nothing is known.
DEFAULT_OUTPUT = OutputFormat(THINK_FORMAT, DEFAULT_CALLS)
_GRANITE_PHRASES = tuple(f"{begin} my thought process:" for begin in ("Here is", "Here's"))
_GRANITE_END_PHRASES = tuple(f"{begin} my response:" for begin in ("Here is", "Here's"))
# Messages to the model itself and to a developer, which are no answers.
_MUSE_THOUGHTS = tuple(f"{space}to={name}<|message|>" for name in ("self", "developer") for space in (" ", ""))
_MUSE_ANSWERS = tuple(f"{space}to={name}<|message|>" for name in ("user", "commentary") for space in (" ", ""))

REASONING: dict[str, ReasoningFormat] = {
    **dict.fromkeys(
        (
            "qwen3", "deepseek_r1", "deepseek_v3", "deepseek_v4", "deepseek_v41", "ernie45", "glm45", "glm47",
            "granite_thinking_parser", "holo2", "hunyuan_a13b", "kimi_k2", "ling3", "mimo", "minicpmv", "minimax_m2", "nemotron_v3",
            "iquest_q1", "olmo3", "poolside_v1", "step3", "step3p5", "step5",
        ),
        THINK_FORMAT,
    ),
    **dict.fromkeys(
        ("cohere_command3", "cohere_command4"), ReasoningFormat(("<|START_THINKING|>",), ("<|END_THINKING|>",))
    ),
    "apriel": ReasoningFormat(("Here are my reasoning steps:",), ("[BEGIN FINAL RESPONSE]",)),
    "gemma4": ReasoningFormat(("<|channel>",), ("<channel|>",), title="thought\n"),
    "granite": ReasoningFormat(("<think>", *_GRANITE_PHRASES), ("</think>", *_GRANITE_END_PHRASES)),
    "longcat": ReasoningFormat(("<longcat_think>",), ("</longcat_think>",)),
    **dict.fromkeys(("hy_v3", "hy_v4"), THINK_FORMAT),
    "hyperclovax_seed_think_14b": ReasoningFormat(("/think\n",), ("<|im_end|>",)),
    "inkling": ReasoningFormat(("<|content_thinking|>",), ("<|end_message|>", "<|content_model_end_sampling|>")),
    # Messages of Spark without a recipient are reasoning.
    "muse": ReasoningFormat((*_MUSE_THOUGHTS, "<|message|>"), ("<|eom|>", "<|eot|>")),
    "muse_glimmer": ReasoningFormat(_MUSE_THOUGHTS, ("<|eom|>", "<|eot|>")),
    "kimi_k3": ReasoningFormat(("<|open|>think<|sep|>",), ("<|close|>think<|sep|>",)),
    "k2_horizon": ReasoningFormat(
        ("<ifm|think>", "<ifm|think_fast>", "<ifm|think_faster>"), ("</ifm|think>", "</ifm|think_fast>", "</ifm|think_faster>")
    ),
    "minimax_m3": ReasoningFormat(("<mm:think>",), ("</mm:think>",)),
    "mistral": ReasoningFormat(("[THINK]",), ("[/THINK]",), has_calls=False),
    "plamo3": ReasoningFormat(("<|plamo:begin_think:plamo|>",), ("<|plamo:end_think:plamo|>",)),
    "seed_oss": ReasoningFormat(("<seed:think>",), ("</seed:think>",)),
    "solar_open": ReasoningFormat(("<|think|>",), ("<|end|>",)),
    "solar_open2": ReasoningFormat(("<|think:start|>",), ("<|think:end|>",)),
}  # fmt: skip
"""Reasoning formats by the name of vLLM's reasoning parser."""

# Markers around the answer, by the name of the reasoning parser or tool parser.
_IGNORED: dict[str, tuple[str, ...]] = {
    "apriel": ("[END FINAL RESPONSE]",),
    "gigachat35": ("<|message_sep|>",),
    "granite": ("<response>", "</response>"),
    "hunyuan_a13b": ("<answer>", "</answer>"),
    **dict.fromkeys(
        ("cohere_command3", "cohere_command4"), ("<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|START_TEXT|>", "<|END_TEXT|>")
    ),
    "ernie45": ("<response>", "</response>"),
    "gigachat3": ("<|message_sep|>",),
    "hyperclovax_seed_think_14b": ("<|im_start|>assistant", "<|im_start|>", "<|im_end|>"),
    "inkling": ("<|content_text|>", "<|content_invoke_tool_text|>", "<|content_tool_error|>"),
    "muse": _MUSE_ANSWERS,
    "muse_glimmer": (*_MUSE_ANSWERS, "<|message|>"),
    "kimi_k3": ("<|open|>response<|sep|>", "<|close|>response<|sep|>", "<|close|>message<|sep|>"),
    "gemma4": ("<|tool_response>",),
    "solar_open": ("<|begin|>assistant", "<|content|>", "<|end|>"),
}


_MINIMAX_M3 = NestedXmlCalls("]<]minimax[>[")
_RESPONSE, _NO_RESPONSE = "<|open|>response<|sep|>", "<|open|>response<|sep|><|close|>response<|sep|>"
_MUSE_HEAD = r"(<\|start\|>assistant)? to={}<\|message\|>"
# Markers before a constrained answer, and before required calls, by the name of the parser.
_HEADS: dict[str, tuple[Format, Format | None]] = {
    "cohere_command3": (literal("<|START_RESPONSE|>"), None),
    "cohere_command4": (literal("<|START_TEXT|>"), None),
    "granite": (literal("<response>"), None),
    "hunyuan_a13b": (regex("<answer>\n?"), None),
    "functionary_v32": (literal("all\n"), None),
    "hyperclovax_seed_think_14b": (literal("<|im_start|>assistant"), literal("<|im_start|>assistant")),
    "inkling": (
        one_of([literal("<|content_text|>"), literal("<|message_model|><|content_text|>")]),
        literal("<|message_model|>"),
    ),
    "solar_open": (regex(r"(<\|begin\|>assistant)?<\|content\|>"), literal("<|begin|>assistant")),
    "kimi_k3": (literal(_RESPONSE), literal(_NO_RESPONSE)),
    **dict.fromkeys(("muse", "muse_glimmer"), (regex(_MUSE_HEAD.format("user")), regex(_MUSE_HEAD.format(r"[\w.\-]+")))),
}
# Beginning of the first message, by the name of the tool parser.
_OPENINGS = {
    "functionary_v32": ">>>",
    "inkling": "<|message_model|>",
    "muse": "<|start|>assistant",
    "muse_glimmer": "<|start|>assistant",
}
# Head of a call as a message with a role of its own, in the older form of GigaChat 3.
GIGACHAT_ROLE = "function call<|role_sep|>"
_GLM = CallFormat(KeyedXmlCalls(), ("<tool_call>",), ("</tool_call>",))
_LLAMA = CallFormat(
    JsonCalls("", separator="; ", arguments_key="parameters", needs_declared=True), ("<|python_tag|>",), leads=("{",)
)
_PYTHON = CallFormat(PythonCalls(needs_declared=True), leads=("[",))
_LLAMA4 = CallFormat(
    PythonCalls("<|python_start|>[", "]<|python_end|>", ends=("<|python_end|>",), needs_declared=True),
    ("<|python_start|>",),
    ("<|python_end|>",),
    ("[",),
)
_COHERE = CallFormat(
    JsonCalls(
        "<|START_ACTION|>[\n",
        "\n]<|END_ACTION|>",
        ",\n",
        ends=("<|END_ACTION|>",),
        name_key="tool_name",
        arguments_key="parameters",
        number_key="tool_call_id",
    ),
    ("<|START_ACTION|>",),
    ("<|END_ACTION|>",),
)

CALLS: dict[str, CallFormat] = {
    "apertus": CallFormat(
        KeyedCalls("<|tools_prefix|>[", "]<|tools_suffix|>", ("<|tools_suffix|>",)),
        ("<|tools_prefix|>",),
        ("<|tools_suffix|>",),
    ),
    "cohere_command3": _COHERE,
    "cohere_command4": _COHERE,
    "cwm": CallFormat(ToolTagCalls(), ("<tool:",), ("</tool>",)),
    "deepseek_v3": deepseek_calls(fenced=True),
    "deepseek_v31": deepseek_calls(fenced=False),
    "deepseek_v32": dsml_calls("function_calls"),
    "deepseek_v4": dsml_calls("tool_calls"),
    "deepseek_v41": dsml_calls("calls", " "),
    "dots": invoke_calls("<dots_function_call>", "</dots_function_call>", has_json=True),
    "functionary_v31": CallFormat(NamedCalls("", "", "<function=", ">", "</function>"), ("<function=",), ("</function>",)),
    "functionary_v32": CallFormat(RecipientCalls(), leads=(">>>",)),
    "functiongemma": gemma_calls("<start_function_call>", "<end_function_call>", "<escape>"),
    "gemma4": gemma_calls("<|tool_call>", "<tool_call|>", '<|"|>', sorts_keys=True),
    "gigachat3": json_object_calls("<|function_call|>", "", GIGACHAT_ROLE),
    "gigachat35": dsml_calls("tool_calls", word="GCML"),
    "glm45": _GLM,
    "glm47": _GLM,
    "granite": CallFormat(
        JsonCalls("<|tool_call|>[", "]", needs_declared=True), ("<|tool_call|>", "<tool_call>"), ("</tool_call>",), ("[",)
    ),
    "granite-20b-fc": json_object_calls("<function_call> ", ""),
    "hunyuan_a13b": json_list_calls("<tool_calls>", "</tool_calls>"),
    **dict.fromkeys(HERMES_PARSERS, DEFAULT_CALLS),
    "hy_v3": keyed_xml_calls(has_separator=True),
    "hy_v4": keyed_xml_calls(),
    "hyperclovax_seed_think_14b": CallFormat(
        JsonCalls(" -> tool/function_call\n[", "]<|im_end|>", ends=("<|im_end|>",)),
        (" -> tool/function_call",),
        ("<|im_end|>",),
    ),
    "inkling": inkling_calls(),
    "internlm": internlm_calls(),
    "iquest_q1": element_calls("iquest_tool_call"),
    "jamba": CallFormat(
        JsonCalls("<tool_calls>[\n", "\n]</tool_calls>", ",\n", ("</tool_calls>",)), ("<tool_calls>",), ("</tool_calls>",)
    ),
    "k2_horizon": keyed_xml_calls(prefix="ifm|", has_types=True),
    "kimi_k2": kimi_calls(),
    "kimi_k3": kimi_k3_calls(),
    "lfm2": python_calls("<|tool_call_start|>", "<|tool_call_end|>"),
    "ling3": _GLM,
    "llama3_json": _LLAMA,
    "llama4_json": _LLAMA,
    "llama4_pythonic": _LLAMA4,
    "mimo": xml_calls("", pads=False),
    "longcat": json_object_calls("<longcat_tool_call>\n", "\n</longcat_tool_call>"),
    "minicpm5": minicpm_calls(),
    "minimax_m1": CallFormat(
        JsonCalls("<tool_calls>\n", "\n</tool_calls>", "\n", ("</tool_calls>",)), ("<tool_calls>",), ("</tool_calls>",)
    ),
    "minimax_m2": invoke_calls("<minimax:tool_call>", "</minimax:tool_call>"),
    "minimax_m3": CallFormat(_MINIMAX_M3, (_MINIMAX_M3.begin, _MINIMAX_M3.call_open), (_MINIMAX_M3.end,)),
    "mistral": CallFormat(MistralCalls(is_list=False), ("[TOOL_CALLS]",)),
    "muse": muse_calls(),
    "muse_glimmer": muse_calls(),
    "nemotron_nano_v2": json_list_calls("<TOOLCALL>", "</TOOLCALL>"),
    "olmo3": python_calls("<function_calls>", "</function_calls>", "\n"),
    "openpangu": json_list_calls("<|tool_call_start|>", "<|tool_call_end|>"),
    "phi4_mini_json": CallFormat(
        JsonCalls("functools[", "]", ends=("<|/tool_call|>",), prefixes=("functools[",)),
        ("<|tool_call|>",),
        ("<|/tool_call|>",),
        ("functools[",),
    ),
    "plamo3": plamo_calls(),
    "poolside_v1": _GLM,
    "pythonic": _PYTHON,
    "qwen3_coder": xml_calls("", pads=True),
    "qwen3_xml": xml_calls("", pads=True),
    "rwkv": rwkv_calls(),
    "seed_oss": xml_calls("seed:", may_pad=True),
    "solar_open": solar_calls(),
    "solar_open2": solar2_calls(),
    "step3": step3_calls(),
    "step3p5": xml_calls("", pads=True),
    "step5": xml_calls("", pads=True),
    "xlam": CallFormat(
        JsonCalls("[", "]", ends=("</tool_call>", "```"), prefixes=("[TOOL_CALLS]", "```json"), needs_declared=True),
        ("<tool_call>",),
        ("</tool_call>",),
        ("[", "```json"),
    ),
}
"""Call formats by the name of vLLM's tool parser. vLLM has no parser for these names of our own: `functionary_v31`, `functionary_v32`,
`hyperclovax_seed_think_14b`, `minimax_m1`, `nemotron_nano_v2` and `openpangu`. So are the reasoning formats `apriel` and `longcat`."""


def output_format(reasoning_parser: str | None, tool_parser: str | None) -> OutputFormat:
    """Return the format of a pair of declared parsers.

    Reasoning and calls in the usual form, `<think>` and Hermes, are read without a parser's name too.
    """
    if REASONING.get(reasoning_parser or "qwen3") == THINK_FORMAT and (tool_parser or "hermes") in HERMES_PARSERS:
        return replace(DEFAULT_OUTPUT, ignored=_IGNORED.get(reasoning_parser or "", ()))
    reasoning = REASONING[reasoning_parser] if reasoning_parser else None
    calls = CALLS[tool_parser] if tool_parser else None
    ignored = {*_IGNORED.get(reasoning_parser or "", ()), *_IGNORED.get(tool_parser or "", ())}
    parser = tool_parser or reasoning_parser or ""
    answer_head, call_head = _HEADS.get(parser) or _HEADS.get(reasoning_parser or "") or (None, None)
    return OutputFormat(reasoning, calls, tuple(sorted(ignored)), answer_head, call_head, _OPENINGS.get(parser, ""))


def same_but_space(parser: str) -> list[str]:
    """Return the parsers of calls that differ from `parser` at most in the line breaks around values, `parser` first."""
    syntax = CALLS[parser].syntax
    if not isinstance(syntax, XmlCalls):
        return [parser]
    others = {name: each.syntax for name, each in CALLS.items() if isinstance(each.syntax, XmlCalls)}
    return [parser, *(name for name, each in others.items() if replace(each, pads=syntax.pads) == syntax)]
