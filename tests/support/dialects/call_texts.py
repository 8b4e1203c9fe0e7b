"""Calls as the models of each family write them, by the name of the tool parser."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from tests.support.dialects.parser_driver import CLOCK, WEATHER

REPORT = {
    "type": "function",
    "name": "report",
    "strict": True,
    "parameters": {
        "type": "object",
        "properties": {
            "title": {"type": "string"},
            "days": {"type": "integer"},
            "draft": {"type": "boolean"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "place": {
                "type": "object",
                "properties": {"name": {"type": "string"}, "height": {"type": "number"}},
                "required": ["name", "height"],
                "additionalProperties": False,
            },
        },
        "required": ["title", "days", "draft", "tags", "place"],
        "additionalProperties": False,
    },
}
REPORT_VALUES = {
    "title": 'Grüße, "Öl"\n<b>',
    "days": "3",
    "draft": "true",
    "tags": '["a", "b c"]',
    "place": '{"name": "Åre", "height": 1.5}',
}
KINDS = {"days": "number", "draft": "boolean", "tags": "array", "place": "object"}
TOOLS = (WEATHER, CLOCK, REPORT)
REPORTED = '{"title": "Grüße, \\"Öl\\"\\n<b>", "days": 3, "draft": true, "tags": ["a", "b c"], "place": {"name": "Åre", "height": 1.5}}'


class Calls(NamedTuple):
    """Texts of a call, of two calls, of a call without arguments, and of a call with every type of argument."""

    one: str
    two: str
    empty: str
    typed: str


def _written(call: Callable[..., str], section: Callable[..., str] = "".join) -> Calls:
    """Write calls with `call`, which takes the name of the tool and the arguments, and put them together with `section`."""
    oslo, rom = (call("get_weather", {"city": city}) for city in ("Oslo", "Rom"))
    calls = ([oslo], [oslo, rom], [call("clock", {})], [call("report", REPORT_VALUES)])
    return Calls(*(section(one) for one in calls))


def _xml(mark: str, around: str = "\n") -> Calls:
    def call(name: str, values: Mapping[str, str]) -> str:
        parameters = "".join(f"<parameter={key}>{around}{value}{around}</parameter>\n" for key, value in values.items())
        return f"<{mark}tool_call>\n<function={name}>\n{parameters}</function>\n</{mark}tool_call>"

    return _written(call, "\n".join)


def _dsml(section: str, space: str = "", word: str = "DSML") -> Calls:
    mark = f"｜{word}｜{space}"

    def call(name: str, values: Mapping[str, str]) -> str:
        parameters = "".join(
            f'<{mark}parameter name="{key}" string="{"false" if key in KINDS else "true"}">{value}</{mark}parameter>\n'
            for key, value in values.items()
        )
        return f'<{mark}invoke name="{name}">\n{parameters}</{mark}invoke>\n'

    return _written(call, lambda calls: f"<{mark}{section}>\n{''.join(calls)}</{mark}{section}>")


def _invoke(begin: str, end: str, prefix: str = "") -> Calls:
    def call(name: str, values: Mapping[str, str]) -> str:
        parameters = "".join(f'<{prefix}parameter name="{key}">{value}</{prefix}parameter>\n' for key, value in values.items())
        return f'<{prefix}invoke name="{name}">\n{parameters}</{prefix}invoke>\n'

    return _written(call, lambda calls: f"{begin}\n{''.join(calls)}{end}")


def _nested_xml(mark: str) -> Calls:
    def call(name: str, arguments: str) -> str:
        return f'<invoke name="{name}">{arguments}</invoke>\n'

    def block(*calls: str) -> str:
        return f"<tool_call>\n{''.join(calls)}</tool_call>".replace("<", f"{mark}<").replace("&lt;", "<")

    oslo, rom = (call("get_weather", f"<city>{city}</city>") for city in ("Oslo", "Rom"))
    report = call(
        "report",
        '<title>Grüße, "Öl"\n&lt;b></title><days>3</days><draft>true</draft><tags><item>a</item><item>b c</item></tags>'
        "<place><name>Åre</name><height>1.5</height></place>",
    )
    return Calls(block(oslo), block(oslo, rom), block(call("clock", "")), block(report))


def _kimi_k3() -> Calls:
    def element(name: str, attributes: str, *inside: str) -> str:
        return f"<|open|>{name}{attributes}<|sep|>{''.join(inside)}<|close|>{name}<|sep|>"

    def call(name: str, values: Mapping[str, str]) -> str:
        kinds = ((key, KINDS.get(key, "string"), value) for key, value in values.items())
        arguments = (element("argument", f' key="{key}" type="{kind}"', value) for key, kind, value in kinds)
        return element("call", f' tool="{name}" index="{2 if "Rom" in values.values() else 1}"', *arguments)

    return _written(call, lambda calls: element("tools", "", *calls))


def _elements(begin: str, call_begin: str, prefix: str, parameter: str, call_end: str, end: str) -> Calls:
    """Return calls as elements `invoke` or `function` with attributes, without line breaks."""
    kind = "invoke" if prefix else "function"

    def call(name: str, values: Mapping[str, str]) -> str:
        inside = "".join(f'<{prefix}{parameter} name="{key}">{value}</{prefix}{parameter}>' for key, value in values.items())
        return f'{call_begin}<{prefix}{kind} name="{name}">{inside}</{prefix}{kind}>{call_end}'

    return _written(call, lambda calls: begin + ("" if begin else "\n").join(calls) + end)


def _glm(space: str) -> Calls:
    def call(name: str, values: Mapping[str, str]) -> str:
        parameters = "".join(
            f"<arg_key>{key}</arg_key>{space}<arg_value>{value}</arg_value>{space}" for key, value in values.items()
        )
        return f"<tool_call>{name}{space}{parameters}</tool_call>"

    return _written(call, "\n".join)


def _keyed_xml(separator: str, space: str, prefix: str = "") -> Calls:
    """Return the calls of `_glm` in a section, with `separator` behind the name."""

    def section(text: str) -> str:
        calls = text.replace("get_weather", f"get_weather{separator}").replace("clock", f"clock{separator}")
        calls = calls.replace("report", f"report{separator}").replace("</tool_call>\n", f"</tool_call>{space}")
        text = f"<tool_calls>{space}{calls}{space}</tool_calls>"
        return re.sub(r"<(/?)(arg_|tool_)", rf"<\1{prefix}\2", text)

    return Calls(*map(section, _glm(space)))


def _solar2() -> Calls:
    """Return the calls of `_glm` with the tags of Solar Open 2: a line for the name, and for each parameter."""
    tags = {
        "<tool_call>": "<|tool_call:start|>",
        "</tool_call>": "<|tool_call:end|>",
        "<arg_key>": "\n<|tool_arg:start|>",
        "</arg_key><arg_value>": "<|tool_arg:value|>",
        "</arg_value>": "<|tool_arg:end|>",
    }

    def call(text: str) -> str:
        for tag, other in tags.items():
            text = text.replace(tag, other)
        return text.replace("<|tool_call:end|>", "\n<|tool_call:end|>")

    return Calls(*map(call, _glm("")))


def _json(begin: str, end: str, separator: str, shape: str) -> Calls:
    def call(name: str, arguments: str) -> str:
        return shape.replace("NAME", name).replace("%", arguments)

    oslo, rom = (call("get_weather", f'{{"city": "{city}"}}') for city in ("Oslo", "Rom"))
    return Calls(
        begin + oslo + end,
        begin + oslo + separator + rom + end,
        begin + call("clock", "{}") + end,
        begin + call("report", REPORTED) + end,
    )


def _json_sections(begin: str, end: str) -> Calls:
    """Return calls in sections of their own."""
    return _json("", "", "\n", f"{begin}{_OBJECT}{end}")


_OBJECT = '{"name": "NAME", "arguments": %}'
_PARAMETERS = '{"name": "NAME", "parameters": %}'
_PYTHON_REPORT = (
    "report(title='Grüße, \"Öl\"\\n<b>', days=3, draft=True, tags=['a', 'b c'], place={'name': 'Åre', 'height': 1.5})"
)


def _python(begin: str, end: str, separator: str = ", ") -> Calls:
    oslo, rom = 'get_weather(city="Oslo")', "get_weather(city='Rom')"
    return Calls(
        begin + oslo + end, begin + oslo + separator + rom + end, begin + "clock()" + end, begin + _PYTHON_REPORT + end
    )


def _gemma(begin: str, end: str, quote: str, report: str) -> Calls:
    def call(name: str, arguments: str) -> str:
        return f"{begin}call:{name}{{{arguments}}}{end}".replace('<|"|>', quote)

    oslo, rom = (call("get_weather", f'city:<|"|>{city}<|"|>') for city in ("Oslo", "Rom"))
    return Calls(oslo, oslo + rom, call("clock", ""), call("report", report))


# Parts of a call in the notation of Gemma.
_TITLE, _DRAFT, _TAGS = 'title:<|"|>Grüße, "Öl"\n<b><|"|>', "days:3,draft:true", 'tags:[<|"|>a<|"|>,<|"|>b c<|"|>]'
_PLACE, _SORTED_PLACE = 'place:{name:<|"|>Åre<|"|>,height:1.5}', 'place:{height:1.5,name:<|"|>Åre<|"|>}'
_DEEPSEEK = ("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>")
_KIMI = ("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>", "")

_ATEM = _invoke("<atem:function_calls>", "</atem:function_calls>", "atem:")
_MUSE = Calls(
    *(
        re.sub(r'(<atem:function_calls>\n<atem:invoke name="(\w+)")', r"<|start|>assistant to=\2<|message|>\1", text)
        + "<|eom|>"
        for text in _ATEM
    )
)

CALL_TEXTS: dict[str, Calls] = {
    "apertus": _json("<|tools_prefix|>[", "]<|tools_suffix|>", ", ", '{"NAME": %}'),
    **dict.fromkeys(
        ("cohere_command3", "cohere_command4"),
        _json("<|START_ACTION|>[\n", "\n]<|END_ACTION|>", ",\n", '{"tool_call_id": "0", "tool_name": "NAME", "parameters": %}'),
    ),
    "cwm": _json("", "", "\n", "<tool: NAME>\n%\n</tool>"),
    "deepseek_v3": _json(
        *_DEEPSEEK, "\n", "<｜tool▁call▁begin｜>function<｜tool▁sep｜>NAME\n```json\n%\n```<｜tool▁call▁end｜>"
    ),
    "deepseek_v31": _json(*_DEEPSEEK, "", "<｜tool▁call▁begin｜>NAME<｜tool▁sep｜>%<｜tool▁call▁end｜>"),
    "deepseek_v32": _dsml("function_calls"),
    "deepseek_v4": _dsml("tool_calls"),
    "deepseek_v41": _dsml("calls", " "),
    "dots": _invoke("<dots_function_call>", "</dots_function_call>"),
    "functionary_v31": _json("", "", "", "<function=NAME>%</function>"),
    "functionary_v32": _json("", "", "", ">>>NAME\n%"),
    "functiongemma": _gemma("<start_function_call>", "<end_function_call>", "<escape>", f"{_TITLE},{_DRAFT},{_TAGS},{_PLACE}"),
    "gemma4": _gemma("<|tool_call>", "<tool_call|>", '<|"|>', f"{_DRAFT},{_SORTED_PLACE},{_TAGS},{_TITLE}"),
    "gigachat3": _json_sections("<|function_call|>", ""),
    "gigachat35": _dsml("tool_calls", word="GCML"),
    "glm45": _glm("\n"),
    "glm47": _glm(""),
    "granite-20b-fc": _json_sections("<function_call> ", ""),
    "granite": _json("<|tool_call|>[", "]", ", ", _OBJECT),
    **dict.fromkeys(("ernie45", "granite4", "hermes", "qwen3_json"), _json_sections("<tool_call>\n", "\n</tool_call>")),
    "hunyuan_a13b": _json("<tool_calls>[", "]</tool_calls>", ", ", _OBJECT),
    "hy_v3": _keyed_xml("<tool_sep>", "\n"),
    "hy_v4": _keyed_xml("", ""),
    "inkling": _json("", "", "<|message_model|>", '<|content_invoke_tool_json|>{"name": "NAME", "args": %}<|end_message|>'),
    "internlm": _json("<|action_start|><|plugin|>\n", "<|action_end|>", "\n", _PARAMETERS),
    "iquest_q1": Calls(*(text.replace("tool_call>", "iquest_tool_call>") for text in _glm(""))),
    "jamba": _json("<tool_calls>[\n", "\n]</tool_calls>", ",\n", _OBJECT),
    "k2_horizon": _keyed_xml("", "", "ifm|"),
    "kimi_k3": _kimi_k3(),
    "kimi_k2": _json(*_KIMI, "<|tool_call_begin|>functions.NAME:0<|tool_call_argument_begin|>%<|tool_call_end|>"),
    "lfm2": _python("<|tool_call_start|>[", "]<|tool_call_end|>"),
    "ling3": _glm(""),
    "llama3_json": _json("", "", "; ", _PARAMETERS),
    "llama4_json": _json("<|python_tag|>", "", "; ", _PARAMETERS),
    "llama4_pythonic": _python("<|python_start|>[", "]<|python_end|>"),
    "longcat": _json_sections("<longcat_tool_call>\n", "\n</longcat_tool_call>"),
    "minicpm5": _elements("", "", "", "param", "", ""),
    "minimax_m1": _json("<tool_calls>\n", "\n</tool_calls>", "\n", _OBJECT),
    "minimax_m2": _invoke("<minimax:tool_call>", "</minimax:tool_call>"),
    "minimax_m3": _nested_xml("]<]minimax[>["),
    "mistral": _json("", "", "", "[TOOL_CALLS]NAME[ARGS]%"),
    **dict.fromkeys(("muse", "muse_glimmer"), _ATEM),
    "nemotron_nano_v2": _json("<TOOLCALL>[", "]</TOOLCALL>", ", ", _OBJECT),
    "olmo3": _python("<function_calls>", "</function_calls>", "\n"),
    "hyperclovax_seed_think_14b": _json(" -> tool/function_call\n[", "]<|im_end|>", ", ", _OBJECT),
    "openpangu": _json("<|tool_call_start|>[", "]<|tool_call_end|>", ", ", _OBJECT),
    "phi4_mini_json": _json("functools[", "]", ", ", _OBJECT),
    "plamo3": _json(
        "<|plamo:begin_tool_requests:plamo|>",
        "<|plamo:end_tool_requests:plamo|>",
        "",
        "<|plamo:begin_tool_request:plamo|><|plamo:begin_tool_name:plamo|>NAME<|plamo:end_tool_name:plamo|>"
        "<|plamo:begin_tool_arguments:plamo|><|plamo:constrain|>json<|plamo:msg|>%"
        "<|plamo:end_tool_arguments:plamo|><|plamo:end_tool_request:plamo|>",
    ),
    "poolside_v1": _glm("\n"),
    "pythonic": _python("[", "]"),
    "qwen3_coder": _xml(""),
    "qwen3_xml": _xml(""),
    "rwkv": _json_sections("**Tool Call:**\n```json\n", "\n```"),
    "seed_oss": _xml("seed:", around=""),
    "solar_open": _json(
        "<|tool_calls|>", "", "", "<|tool_call:begin|>0<|tool_call:name|>NAME<|tool_call:args|>%<|tool_call:end|>"
    ),
    "solar_open2": _solar2(),
    "step3": _elements(
        "<｜tool_calls_begin｜>",
        "<｜tool_call_begin｜>function<｜tool_sep｜>",
        "steptml:",
        "parameter",
        "<｜tool_call_end｜>",
        "<｜tool_calls_end｜>",
    ),
    "step3p5": _xml(""),
    "step5": _xml(""),
    "xlam": _json("[", "]", ", ", _OBJECT),
}
# The old forms of Mistral's calls, and forms that differ in markers left out.
OTHER_TEXTS: dict[str, tuple[str, Calls]] = {
    "seed_oss_with_line_breaks": ("seed_oss", _xml("seed:")),
    "mistral_list": ("mistral", _json("[TOOL_CALLS] [", "]", ", ", _OBJECT)),
    "mistral_without_arguments_marker": ("mistral", _json("", "", "", "[TOOL_CALLS]NAME%")),
    "mistral_with_ids": ("mistral", _json("", "", "", "[TOOL_CALLS]NAME[CALL_ID]a1b2c3d4e[ARGS]%")),
    "gigachat3_in_messages": ("gigachat3", _json_sections("<|message_sep|>\n\nfunction call<|role_sep|>\n", "")),
    "granite_in_tags": ("granite", _json("<tool_call>[", "]</tool_call>", ", ", _OBJECT)),
    "granite_without_marker": ("granite", _json("[", "]", ", ", _OBJECT)),
    "phi4_mini_in_tags": ("phi4_mini_json", _json("<|tool_call|>[", "]<|/tool_call|>", ", ", _OBJECT)),
    "pythonic_without_markers": ("llama4_pythonic", _python("[", "]")),
    "dots_as_json": ("dots", _json("<dots_function_call>", "</dots_function_call>", "\n", _OBJECT)),
    "inkling_with_a_name": (
        "inkling",
        _json("", "", "", '<|message_model|>NAME<|content_invoke_tool_json|>{"name": "NAME", "args": %}<|end_message|>'),
    ),
    "muse_in_messages": ("muse", _MUSE),
    "xlam_in_a_code_block": ("xlam", _json("```json\n[", "]\n```", ", ", _OBJECT)),
    "xlam_in_tags": ("xlam", _json("<tool_call>[", "]</tool_call>", ", ", _OBJECT)),
    "xlam_behind_a_marker": ("xlam", _json("[TOOL_CALLS][", "]", ", ", _OBJECT)),
    "k2_horizon_as_json": (
        "k2_horizon",
        _json("<ifm|tool_calls>", "</ifm|tool_calls>", "\n", f"<ifm|tool_call>{_OBJECT}</ifm|tool_call>"),
    ),
    "k2_horizon_with_types": (
        "k2_horizon",
        Calls(
            *(re.sub("(</ifm.arg_key>)", r"\1<ifm|arg_type>any</ifm|arg_type>", text) for text in _keyed_xml("", "", "ifm|"))
        ),
    ),
    "minicpm5_in_cdata_and_python": (
        "minicpm5",
        Calls(
            *(
                re.sub('name="(title|city)">([^/]*?)</param>', r'name="\1"><![CDATA[\2]]></param>', text)
                .replace("true", "True")
                .replace('["a", "b c"]', "['a', 'b c']")
                for text in _elements("", "", "", "param", "", "")
            )
        ),
    ),
    "kimi_without_section": (
        "kimi_k2",
        _json("", "", "", "<|tool_call_begin|>functions.NAME:1<|tool_call_argument_begin|>%<|tool_call_end|>"),
    ),
}
