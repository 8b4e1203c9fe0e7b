"""Output formats by the names of vLLM's reasoning parsers and tool parsers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from responses_app.dialects.formats.base import CallFormat, OutputFormat, ReasoningFormat
from responses_app.dialects.formats.syntaxes.gemma_calls import GemmaCalls
from responses_app.dialects.formats.syntaxes.json_calls import JsonCalls, KeyedCalls
from responses_app.dialects.formats.syntaxes.keyed_xml_calls import KeyedXmlCalls
from responses_app.dialects.formats.syntaxes.named_calls import MistralCalls, NamedCalls
from responses_app.dialects.formats.syntaxes.nested_xml_calls import NestedXmlCalls
from responses_app.dialects.formats.syntaxes.python_calls import PythonCalls
from responses_app.dialects.formats.syntaxes.xml_calls import XmlCalls

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

REASONING: dict[str, ReasoningFormat] = {
    **dict.fromkeys(
        (
            "qwen3", "deepseek_r1", "deepseek_v3", "deepseek_v4", "deepseek_v41", "ernie45", "glm45", "glm47",
            "granite_thinking_parser", "holo2", "hunyuan_a13b", "kimi_k2", "ling3", "mimo", "minimax_m2", "nemotron_v3", "olmo3",
            "poolside_v1", "step3", "step3p5", "step5",
        ),
        THINK_FORMAT,
    ),
    **dict.fromkeys(
        ("cohere_command3", "cohere_command4"), ReasoningFormat(("<|START_THINKING|>",), ("<|END_THINKING|>",))
    ),
    "gemma4": ReasoningFormat(("<|channel>",), ("<channel|>",), title="thought\n"),
    "granite": ReasoningFormat(("<think>", *_GRANITE_PHRASES), ("</think>", *_GRANITE_END_PHRASES)),
    "longcat": ReasoningFormat(("<longcat_think>",), ("</longcat_think>",)),
    **dict.fromkeys(("hy_v3", "hy_v4"), THINK_FORMAT),
    "k2_horizon": ReasoningFormat(
        ("<ifm|think>", "<ifm|think_fast>", "<ifm|think_faster>"), ("</ifm|think>", "</ifm|think_fast>", "</ifm|think_faster>")
    ),
    "minimax_m3": ReasoningFormat(("<mm:think>",), ("</mm:think>",)),
    "mistral": ReasoningFormat(("[THINK]",), ("[/THINK]",), has_calls=False),
    "plamo3": ReasoningFormat(("<|plamo:begin_think:plamo|>",), ("<|plamo:end_think:plamo|>",)),
    "seed_oss": ReasoningFormat(("<seed:think>",), ("</seed:think>",)),
}  # fmt: skip
"""Reasoning formats by the name of vLLM's reasoning parser."""

# Markers around the answer, by the name of the reasoning parser or tool parser.
_IGNORED: dict[str, tuple[str, ...]] = {
    "granite": ("<response>", "</response>"),
    "hunyuan_a13b": ("<answer>", "</answer>"),
    **dict.fromkeys(
        ("cohere_command3", "cohere_command4"), ("<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|START_TEXT|>", "<|END_TEXT|>")
    ),
    "ernie45": ("<response>", "</response>"),
    "gigachat3": ("<|message_sep|>",),
    "gemma4": ("<|tool_response>",),
}


def _json_list(begin: str, end: str) -> CallFormat:
    ends = (end,) if end else ()
    return CallFormat(JsonCalls(f"{begin}[", f"]{end}", ends=ends), (begin,), ends)


def _json_object(begin: str, end: str, *other_begins: str) -> CallFormat:
    """Declare calls that are an object each, in sections of their own."""
    ends = tuple(filter(None, (end.strip(),)))
    syntax = JsonCalls(begin, end, "", ends, is_block=False)
    return CallFormat(syntax, (begin.strip(), *other_begins), ends)


def _xml(prefix: str, *, pads: bool = False, may_pad: bool = False) -> CallFormat:
    syntax = XmlCalls(
        f"<{prefix}tool_call>",
        f"</{prefix}tool_call>",
        "<function=",
        "</function>",
        "<parameter=",
        "</parameter>",
        pads=pads,
        may_pad=may_pad,
    )
    return CallFormat(syntax, (syntax.begin, syntax.call_open), (syntax.end,))


def _gemma(begin: str, end: str, quote: str, *, sorts_keys: bool = False) -> CallFormat:
    return CallFormat(GemmaCalls(begin, end, quote, sorts_keys), (begin,), (end,))


def _plamo() -> CallFormat:
    def mark(name: str) -> str:
        return f"<|plamo:{name}:plamo|>"

    syntax = NamedCalls(
        mark("begin_tool_requests"),
        mark("end_tool_requests"),
        mark("begin_tool_request") + mark("begin_tool_name"),
        f"{mark('end_tool_name')}{mark('begin_tool_arguments')}<|plamo:constrain|>json<|plamo:msg|>",
        mark("end_tool_arguments") + mark("end_tool_request"),
    )
    return CallFormat(syntax, (syntax.begin,), (syntax.end,))


def _dsml(section: str, space: str = "") -> CallFormat:
    mark = f"｜DSML｜{space}"
    syntax = XmlCalls(
        f"<{mark}{section}>",
        f"</{mark}{section}>",
        f"<{mark}invoke name=",
        f"</{mark}invoke>",
        f"<{mark}parameter name=",
        f"</{mark}parameter>",
        attributes=True,
        marks_strings=True,
        is_block=True,
    )
    return CallFormat(syntax, (syntax.begin, syntax.call_open), (syntax.end,))


def _deepseek(*, fenced: bool) -> CallFormat:
    syntax = NamedCalls(
        "<｜tool▁calls▁begin｜>",
        "<｜tool▁calls▁end｜>",
        "<｜tool▁call▁begin｜>",
        "<｜tool▁sep｜>",
        "<｜tool▁call▁end｜>",
        fenced=fenced,
    )
    return CallFormat(syntax, (syntax.begin, syntax.call_begin), (syntax.end,))


def _kimi() -> CallFormat:
    syntax = NamedCalls(
        "<|tool_calls_section_begin|>",
        "<|tool_calls_section_end|>",
        "<|tool_call_begin|>",
        "<|tool_call_argument_begin|>",
        "<|tool_call_end|>",
        prefix="functions.",
        index_separator=":",
    )
    return CallFormat(syntax, (syntax.begin, syntax.call_begin), (syntax.end,))


def _invoke(begin: str, end: str) -> CallFormat:
    syntax = XmlCalls(
        begin,
        end,
        "<invoke name=",
        "</invoke>",
        "<parameter name=",
        "</parameter>",
        attributes=True,
        is_block=True,
    )
    return CallFormat(syntax, (syntax.begin, syntax.call_open), (syntax.end,))


def _keyed_xml(**form: Any) -> CallFormat:
    syntax = KeyedXmlCalls(**form, has_section=True)
    return CallFormat(syntax, (syntax.section[0], syntax.begin), (syntax.section[1], syntax.end))


def _internlm() -> CallFormat:
    syntax = JsonCalls(
        "<|action_start|><|plugin|>\n",
        "<|action_end|>",
        "\n",
        ("<|action_end|>",),
        arguments_key="parameters",
        other_arguments_key="arguments",
        prefixes=("<|plugin|>",),
    )
    return CallFormat(syntax, ("<|action_start|>",), syntax.ends)


def _python(begin: str, end: str, separator: str = ", ") -> CallFormat:
    bracket = ("[", "]") if separator == ", " else ("", "")
    syntax = PythonCalls(begin + bracket[0], bracket[1] + end, separator, (end,))
    return CallFormat(syntax, (begin,), (end,))


_MINIMAX_M3 = NestedXmlCalls("]<]minimax[>[")
# Head of a call as a message with a role of its own, in the older form of GigaChat 3.
_GIGACHAT_ROLE = "function call<|role_sep|>"
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
    "deepseek_v3": _deepseek(fenced=True),
    "deepseek_v31": _deepseek(fenced=False),
    "deepseek_v32": _dsml("function_calls"),
    "deepseek_v4": _dsml("tool_calls"),
    "deepseek_v41": _dsml("calls", " "),
    "dots": _invoke("<dots_function_call>", "</dots_function_call>"),
    "functiongemma": _gemma("<start_function_call>", "<end_function_call>", "<escape>"),
    "gemma4": _gemma("<|tool_call>", "<tool_call|>", '<|"|>', sorts_keys=True),
    "gigachat3": _json_object("<|function_call|>", "", _GIGACHAT_ROLE),
    "glm45": _GLM,
    "glm47": _GLM,
    "granite": CallFormat(
        JsonCalls("<|tool_call|>[", "]", needs_declared=True), ("<|tool_call|>", "<tool_call>"), ("</tool_call>",), ("[",)
    ),
    "granite-20b-fc": _json_object("<function_call> ", ""),
    "hunyuan_a13b": _json_list("<tool_calls>", "</tool_calls>"),
    **dict.fromkeys(HERMES_PARSERS, DEFAULT_CALLS),
    "hy_v3": _keyed_xml(has_separator=True),
    "hy_v4": _keyed_xml(),
    "internlm": _internlm(),
    "jamba": CallFormat(
        JsonCalls("<tool_calls>[\n", "\n]</tool_calls>", ",\n", ("</tool_calls>",)), ("<tool_calls>",), ("</tool_calls>",)
    ),
    "k2_horizon": _keyed_xml(prefix="ifm|", has_types=True),
    "kimi_k2": _kimi(),
    "lfm2": _python("<|tool_call_start|>", "<|tool_call_end|>"),
    "ling3": _GLM,
    "llama3_json": _LLAMA,
    "llama4_json": _LLAMA,
    "llama4_pythonic": _LLAMA4,
    "mimo": _xml("", pads=False),
    "longcat": _json_object("<longcat_tool_call>\n", "\n</longcat_tool_call>"),
    "minimax_m2": _invoke("<minimax:tool_call>", "</minimax:tool_call>"),
    "minimax_m3": CallFormat(_MINIMAX_M3, (_MINIMAX_M3.begin, _MINIMAX_M3.call_open), (_MINIMAX_M3.end,)),
    "mistral": CallFormat(MistralCalls(is_list=False), ("[TOOL_CALLS]",)),
    "nemotron_nano_v2": _json_list("<TOOLCALL>", "</TOOLCALL>"),
    "olmo3": _python("<function_calls>", "</function_calls>", "\n"),
    "phi4_mini_json": CallFormat(
        JsonCalls("functools[", "]", ends=("<|/tool_call|>",), prefixes=("functools[",)),
        ("<|tool_call|>",),
        ("<|/tool_call|>",),
        ("functools[",),
    ),
    "plamo3": _plamo(),
    "poolside_v1": _GLM,
    "pythonic": _PYTHON,
    "qwen3_coder": _xml("", pads=True),
    "qwen3_xml": _xml("", pads=True),
    "seed_oss": _xml("seed:", may_pad=True),
    "step3p5": _xml("", pads=True),
    "step5": _xml("", pads=True),
    "xlam": CallFormat(
        JsonCalls("[", "]", ends=("</tool_call>", "```"), prefixes=("[TOOL_CALLS]", "```json"), needs_declared=True),
        ("<tool_call>",),
        ("</tool_call>",),
        ("[", "```json"),
    ),
}
"""Call formats by the name of vLLM's tool parser. `nemotron_nano_v2` is a name of our own: vLLM has none for the format.
So is the reasoning format `longcat`."""


def output_format(reasoning_parser: str | None, tool_parser: str | None) -> OutputFormat | None:
    """Return the format of a pair of parsers, None if a format of the pair is not declared here.

    Reasoning and calls in the usual form, `<think>` and Hermes, are read without a parser's name too.
    """
    if REASONING.get(reasoning_parser or "qwen3") == THINK_FORMAT and (tool_parser or "hermes") in HERMES_PARSERS:
        return replace(DEFAULT_OUTPUT, ignored=_IGNORED.get(reasoning_parser or "", ()))
    reasoning = REASONING.get(reasoning_parser or "")
    calls = CALLS.get(tool_parser or "")
    if (reasoning_parser and reasoning is None) or (tool_parser and calls is None):
        return None
    ignored = {*_IGNORED.get(reasoning_parser or "", ()), *_IGNORED.get(tool_parser or "", ())}
    return OutputFormat(reasoning, calls, tuple(sorted(ignored)))
