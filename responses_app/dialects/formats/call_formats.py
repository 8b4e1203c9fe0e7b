"""Builders of call formats: markers and a syntax, for the forms that several families share or that have many markers."""

from __future__ import annotations

from typing import Any

from responses_app.dialects.formats.base import CallFormat
from responses_app.dialects.formats.syntaxes.gemma_calls import GemmaCalls
from responses_app.dialects.formats.syntaxes.json_calls import JsonCalls
from responses_app.dialects.formats.syntaxes.message_calls import MessageCalls
from responses_app.dialects.formats.syntaxes.named_calls import NamedCalls
from responses_app.dialects.formats.syntaxes.python_calls import PythonCalls
from responses_app.dialects.formats.xml_syntaxes.element_calls import ElementCalls
from responses_app.dialects.formats.xml_syntaxes.keyed_xml_calls import KeyedXmlCalls
from responses_app.dialects.formats.xml_syntaxes.xml_calls import XmlCalls


def json_list_calls(begin: str, end: str) -> CallFormat:
    """Declare a list of objects between two markers."""
    ends = (end,) if end else ()
    return CallFormat(JsonCalls(f"{begin}[", f"]{end}", ends=ends), (begin,), ends)


def json_object_calls(begin: str, end: str, *other_begins: str) -> CallFormat:
    """Declare calls that are an object each, in sections of their own."""
    ends = tuple(filter(None, (end.strip(),)))
    syntax = JsonCalls(begin, end, "", ends, is_block=False)
    return CallFormat(syntax, (begin.strip(), *other_begins), ends)


def xml_calls(prefix: str, *, pads: bool = False, may_pad: bool = False) -> CallFormat:
    """Declare elements `<function=name>` with elements `<parameter=name>`."""
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


def gemma_calls(begin: str, end: str, quote: str, *, sorts_keys: bool = False) -> CallFormat:
    """Declare calls of Gemma models between two markers."""
    return CallFormat(GemmaCalls(begin, end, quote, sorts_keys), (begin,), (end,))


def plamo_calls() -> CallFormat:
    """Declare calls of PLaMo: a name and JSON, between tokens of their own."""

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


def dsml_calls(section: str, space: str = "", word: str = "DSML") -> CallFormat:
    """Declare elements of DeepSeek and GigaChat, in a section of a name; `word` marks the elements."""
    mark = f"｜{word}｜{space}"
    syntax = XmlCalls(
        f"<{mark}{section}>",
        f"</{mark}{section}>",
        f"<{mark}invoke name=",
        f"</{mark}invoke>",
        f"<{mark}parameter name=",
        f"</{mark}parameter>",
        attributes=True,
        type_attribute="string",
        is_block=True,
    )
    return CallFormat(syntax, (syntax.begin, syntax.call_open), (syntax.end,))


def deepseek_calls(*, fenced: bool) -> CallFormat:
    """Declare calls of DeepSeek: a name and JSON, with `fenced` in a block of code."""
    syntax = NamedCalls(
        "<｜tool▁calls▁begin｜>",
        "<｜tool▁calls▁end｜>",
        "<｜tool▁call▁begin｜>",
        "<｜tool▁sep｜>",
        "<｜tool▁call▁end｜>",
        fenced=fenced,
    )
    return CallFormat(syntax, (syntax.begin, syntax.call_begin), (syntax.end,))


def kimi_calls() -> CallFormat:
    """Declare calls of Kimi-K2: a name with a number, and JSON."""
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


def invoke_calls(begin: str, end: str, *, has_json: bool = False) -> CallFormat:
    """Declare elements `<invoke name="…">` between two markers."""
    syntax = XmlCalls(
        begin,
        end,
        "<invoke name=",
        "</invoke>",
        "<parameter name=",
        "</parameter>",
        attributes=True,
        is_block=True,
        has_json=has_json,
    )
    return CallFormat(syntax, (syntax.begin, syntax.call_open), (syntax.end,))


def keyed_xml_calls(**form: Any) -> CallFormat:
    """Declare keyed elements in a section."""
    syntax = KeyedXmlCalls(**form, has_section=True)
    return CallFormat(syntax, (syntax.section[0], syntax.begin), (syntax.section[1], syntax.end))


def solar_calls() -> CallFormat:
    """Declare calls of Solar Open: an id, a name and JSON. The end of the section ends the output."""
    syntax = NamedCalls(
        "<|tool_calls|>",
        "",
        "<|tool_call:begin|>",
        "<|tool_call:args|>",
        "<|tool_call:end|>",
        name_begin="<|tool_call:name|>",
    )
    return CallFormat(syntax, (syntax.begin, syntax.call_begin), ("<|calls|>",))


def solar2_calls() -> CallFormat:
    """Declare calls of Solar Open 2: a line with the name, and a line for each parameter."""
    syntax = ElementCalls(
        call_begin="<|tool_call:start|>",
        name_end="\n",
        call_end="<|tool_call:end|>",
        key_begin="<|tool_arg:start|>",
        key_end="<|tool_arg:value|>",
        value_end="<|tool_arg:end|>\n",
        call_separator="\n",
    )
    return CallFormat(syntax, (syntax.call_begin,), (syntax.call_end,))


def element_calls(call_name: str) -> CallFormat:
    """Declare keyed elements in elements of another name than `tool_call`."""
    syntax = KeyedXmlCalls(call_name=call_name)
    return CallFormat(syntax, (syntax.begin,), (syntax.end,))


def rwkv_calls() -> CallFormat:
    """Declare calls of RWKV: a title, and an object in a block of code."""
    title = "**Tool Call:**"
    syntax = JsonCalls(f"{title}\n```json\n", "\n```", "", ("```",), prefixes=("```json", "```"), is_block=False)
    return CallFormat(syntax, (title,))


def kimi_k3_calls() -> CallFormat:
    """Declare elements of Kimi-K3, whose tags are written with special tokens."""

    def mark(kind: str, name: str, end: str = "<|sep|>") -> str:
        return f"<|{kind}|>{name}{end}"

    syntax = XmlCalls(
        mark("open", "tools"),
        mark("close", "tools"),
        mark("open", "call tool=", ""),
        mark("close", "call"),
        mark("open", "argument key=", ""),
        mark("close", "argument"),
        attributes=True,
        type_attribute="type",
        is_block=True,
        tag_end="<|sep|>",
        line="",
        has_index=True,
    )
    return CallFormat(syntax, (syntax.begin, syntax.call_open), (syntax.end, syntax.call_close))


def minicpm_calls() -> CallFormat:
    """Declare elements `<function name="…">` without a section."""
    syntax = XmlCalls(
        "", "", "<function name=", "</function>", "<param name=", "</param>", attributes=True, line="", has_cdata=True
    )
    return CallFormat(syntax, (syntax.call_open,), (syntax.call_close,))


def step3_calls() -> CallFormat:
    """Declare elements of Step 3, each between special tokens."""
    begin, end, separator = "<｜tool_call_begin｜>", "<｜tool_call_end｜>", "<｜tool_sep｜>"
    syntax = XmlCalls(
        "<｜tool_calls_begin｜>",
        "<｜tool_calls_end｜>",
        "<steptml:invoke name=",
        "</steptml:invoke>",
        "<steptml:parameter name=",
        "</steptml:parameter>",
        attributes=True,
        is_block=True,
        line="",
        around=(f"{begin}function{separator}", end),
        skipped=(begin, end, separator, "function"),
    )
    return CallFormat(syntax, (syntax.begin, begin, syntax.call_open), (syntax.end, end))


def internlm_calls() -> CallFormat:
    """Declare objects of InternLM, each in a separate section."""
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


def python_calls(begin: str, end: str, separator: str = ", ") -> CallFormat:
    """Declare calls in Python between two markers, a list unless `separator` is a line break."""
    bracket = ("[", "]") if separator == ", " else ("", "")
    syntax = PythonCalls(begin + bracket[0], bracket[1] + end, separator, (end,))
    return CallFormat(syntax, (begin,), (end,))


def inkling_calls() -> CallFormat:
    """Declare objects of Inkling, each in a separate message."""
    start, begin, ends = (
        "<|message_model|>",
        "<|content_invoke_tool_json|>",
        ("<|end_message|>", "<|content_model_end_sampling|>"),
    )
    objects = JsonCalls(begin, ends[0], start, ends, arguments_key="args", is_block=False)
    others = (
        "<|content_thinking|>",
        "<|content_text|>",
        "<|content_invoke_tool_text|>",
        "<|content_tool_error|>",
        *ends,
        start,
    )
    return CallFormat(MessageCalls(start, objects, (begin,), others), (start, begin), ends)


def muse_calls() -> CallFormat:
    """Declare elements of Muse, in messages to a tool."""
    elements = XmlCalls(
        "<atem:function_calls>",
        "</atem:function_calls>",
        "<atem:invoke name=",
        "</atem:invoke>",
        "<atem:parameter name=",
        "</atem:parameter>",
        attributes=True,
        is_block=True,
    )
    start, ends, begins = "<|start|>assistant", ("<|eom|>", "<|eot|>"), (elements.begin, elements.call_open)
    recipients = ("user", "commentary", "self", "developer")
    others = tuple(f"{space}to={name}<|message|>" for name in recipients for space in (" ", ""))
    syntax = MessageCalls(start, elements, begins, (*others, *ends, start), "to=", "<|message|>")
    return CallFormat(syntax, (start, *begins), (elements.end, *ends))
