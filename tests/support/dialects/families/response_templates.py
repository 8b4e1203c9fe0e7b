"""Response templates of the documented shape, with outputs that a model writes in the forms that these name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

FUNCTION = {"type": "function", "function": "{content}"}
NAMED = {"type": "function", "function": {"name": "{name}", "arguments": "{content}"}}
THOUGHT = {"open": "<idea>", "close": "</idea>"}
TRIP = {"title": "Größe", "place": {"name": "Bergen", "tags": ["a", "b"]}, "days": 3, "exact": True}
CALLS = (("get_weather", {"city": "Oslo"}), ("plan_trip", TRIP))
OSLO, TRIP_JSON = '{"city": "Oslo"}', json.dumps(TRIP, ensure_ascii=False)


def response_template(calls: Mapping[str, Any], **fields: Mapping[str, Any] | None) -> dict[str, Any]:
    fields = {"thinking": THOUGHT, "content": {"close": "<|im_end|>"}, **fields}
    named = {name: field for name, field in fields.items() if field is not None}
    return {
        "version": 1,
        "defaults": {"role": "assistant"},
        "start_anchor": "<|im_start|>assistant\n",
        "fields": {**named, "tool_calls": {"repeats": True, "content": "json", **calls}},
    }


def object_of(**keys: str) -> dict[str, Any]:
    return {"type": "function", "function": {key: f"{{{value}}}" for key, value in keys.items()}}


def elements(begin: str, element: str, end: str) -> str:
    """Write both calls with an element for each parameter."""
    texts = []
    for name, arguments in CALLS:
        values = {key: value if isinstance(value, str) else json.dumps(value) for key, value in arguments.items()}
        inside = "".join(element.replace("KEY", key).replace("VALUE", value) for key, value in values.items())
        texts.append(begin.replace("NAME", name) + inside + end.replace("NAME", name))
    return "".join(texts)


def named(form: str) -> str:
    """Write both calls with the arguments as JSON."""
    return "".join(form.replace("NAME", name).replace("JSON", json.dumps(each, ensure_ascii=False)) for name, each in CALLS)


class ResponseCase(NamedTuple):
    template: dict[str, Any]
    calls: str
    thought: str = "<idea>I look.</idea>"
    text: str = "Let me look."

    @property
    def output(self) -> str:
        return self.thought + self.text + self.calls


_XML = {"content": "xml-inline", "transform": NAMED}
_AS_JSON = {"value_parser": {"name": "json", "args": {"allow_non_json": True}}}
_HEADER = r"(?:<\|message\|>)?[^<]*"
CASES = {
    "objects": ResponseCase(
        response_template({"open": "<act>", "close": "</act>", "transform": FUNCTION}),
        named('<act>{"name": "NAME", "arguments": JSON}</act>'),
    ),
    "hermes": ResponseCase(
        response_template({"open": "<tool_call>", "close": "</tool_call>", "transform": FUNCTION}),
        named('<tool_call>\n{"name": "NAME", "arguments": JSON}\n</tool_call>\n'),
    ),
    "objects with other keys": ResponseCase(
        response_template(
            {"open": "<act>", "close": "</act>", "transform": object_of(name="content.fn", arguments="content.kw")}
        ),
        named('<act>{"fn": "NAME", "kw": JSON}</act>'),
    ),
    "list of objects": ResponseCase(
        response_template(
            {
                "open": "<|ACT|>",
                "close": "<|END_ACT|>",
                "repeats": False,
                "transform_each": True,
                "transform": object_of(name="tool_name", arguments="parameters"),
            },
            content={"open": "<|SAY|>", "close": "<|END_SAY|>"},
        ),
        f'<|ACT|>[{{"tool_name": "get_weather", "parameters": {OSLO}}}, '
        f'{{"tool_name": "plan_trip", "parameters": {TRIP_JSON}}}]<|END_ACT|>',
        text="<|SAY|>Let me look.<|END_SAY|>",
    ),
    "name in the opening": ResponseCase(
        response_template({"open_pattern": r"<\|fn\|>(?P<name>\w+)<\|with\|>", "close": "<|end_fn|>", "transform": NAMED}),
        named("<|fn|>NAME<|with|>JSON<|end_fn|>"),
    ),
    "several openings with the name": ResponseCase(
        response_template(
            {
                "open_pattern": r"(?:<act>\s*)?(?:<do>|<run>)(?P<name>\w+)<with>",
                "close": ["</do>", "</run>"],
                "transform": NAMED,
            }
        ),
        named("<act>\n<run>NAME<with>JSON</run>"),
    ),
    "name and number in the opening": ResponseCase(
        response_template(
            {
                "open_pattern": r"<\|fn\|>functions\.(?P<name>\w+):(?P<id>\d+)\s*<\|with\|>",
                "close": "<|end_fn|>",
                "transform": {**NAMED, "id": "{id}"},
            }
        ),
        named("<|fn|>functions.NAME:0<|with|>JSON<|end_fn|>"),
    ),
    "closed by the next call": ResponseCase(
        response_template(
            {
                "open_pattern": r"\[TOOL_CALLS\](?P<name>[\w.-]+)\[ARGS\]",
                "close_pattern": r"(?=\[TOOL_CALLS\]|$)",
                "transform": NAMED,
            },
            thinking={"open": "[THINK]", "close": "[/THINK]"},
        ),
        named("[TOOL_CALLS]NAME[ARGS]JSON"),
        "[THINK]I look.[/THINK]",
    ),
    "channels": ResponseCase(
        response_template(
            {
                "open_pattern": r"<\|to\|>commentary to=(?P<name>\w+).*?<\|say\|>",
                "close": "<|done|>",
                "transform": NAMED,
            },
            thinking={"open": "<|to|>analysis<|say|>", "close": "<|done|>"},
            content={"open": "<|to|>final<|say|>", "close": "<|done|>"},
        ),
        named("<|to|>commentary to=NAME<|say|>JSON<|done|>"),
        "<|to|>analysis<|say|>I look.<|done|>",
        "<|to|>final<|say|>Let me look.<|done|>",
    ),
    "elements": ResponseCase(
        response_template(
            {
                "open_pattern": r"<tool_call>\s*<function=(?P<name>\w+)>",
                "close": "</tool_call>",
                "content_args": {"tag_pattern": r"<parameter=(?P<key>\w+)>\s*(?P<value>.*?)\s*</parameter>", **_AS_JSON},
                **_XML,
            }
        ),
        elements("<tool_call>\n<function=NAME>\n", "<parameter=KEY>\nVALUE\n</parameter>\n", "</function>\n</tool_call>"),
    ),
    "elements of keys and values": ResponseCase(
        response_template(
            {
                "open_pattern": r"<do>(?P<name>[^\s<]+)\s*",
                "close": "</do>",
                "content_args": {"tag_pattern": r"<k>(?P<key>.*?)</k>\s*<v>(?P<value>.*?)</v>", **_AS_JSON},
                **_XML,
            }
        ),
        elements("<do>NAME\n", "<k>KEY</k>\n<v>VALUE</v>\n", "</do>"),
    ),
    "elements with the name as a tag": ResponseCase(
        response_template(
            {
                "open_pattern": r"<do><(?P<name>\w+)>",
                "close_pattern": r"</\w+></do>",
                "content_args": {"tag_pattern": r'<arg name="(?P<key>\w+)">(?P<value>.*?)</arg>'},
                **_XML,
            }
        ),
        elements("<do><NAME>", '<arg name="KEY">VALUE</arg>', "</NAME></do>"),
    ),
    "own quotes": ResponseCase(
        response_template(
            {
                "open_pattern": r"<\|do>call:(?P<name>\w+)",
                "close": "<do|>",
                "content_args": {"unquoted_keys": True, "string_delims": [["<~>", "<~>"]]},
                "transform": NAMED,
            },
            thinking={"open": "<|channel>thought\n", "close": "<channel|>"},
        ),
        "<|do>call:get_weather{city:<~>Oslo<~>}<do|><|do>call:plan_trip{title:<~>Größe<~>,"
        "place:{name:<~>Bergen<~>,tags:[<~>a<~>,<~>b<~>]},days:3,exact:true}<do|>",
        "<|channel>thought\nI look.<channel|>",
    ),
    "several delimiters": ResponseCase(
        response_template(
            {"open": ["<act>", "<do>"], "close": ["</act>", "</do>"], "transform": FUNCTION},
            thinking={"open": ["<idea>", "<plan>"], "close": ["</idea>", "</plan>"]},
        ),
        named('<do>{"name": "NAME", "arguments": JSON}</do>'),
        "<plan>I look.</plan>",
    ),
    "calls as in messages": ResponseCase(
        response_template({"open": "<act>", "close": "</act>"}),
        named('<act>{"type": "function", "function": {"name": "NAME", "arguments": JSON}}</act>'),
    ),
    "white space that may be absent": ResponseCase(
        response_template(
            {
                "open_pattern": r"\s*<do>\s*<fn=(?P<name>[^>\n]+)>",
                "close_pattern": r"</fn>\s*</do>",
                "content_args": {"tag_pattern": r"<p=(?P<key>[^>\n]+)>\s*(?P<value>.*?)\s*</p>"},
                **_XML,
            },
            content={"close_pattern": r"\s*(?:<\|im_end\|>|$)"},
        ),
        elements("<do><fn=NAME>", "<p=KEY>VALUE</p>", "</fn></do>"),
    ),
    "required reasoning, and no field for the text": ResponseCase(
        response_template(
            {"open": "<act>", "close": "</act>", "transform": FUNCTION}, content=None, thinking={**THOUGHT, "optional": False}
        ),
        named('<act>{"name": "NAME", "arguments": JSON}</act>'),
    ),
    "reasoning that only ends": ResponseCase(
        response_template(
            {"open": "<tool_call>", "close": "</tool_call>", "transform": FUNCTION},
            thinking={"open_pattern": r"(?:^|<think>\s*)", "close": "</think>"},
            content={"open": "<response>\n", "close_pattern": r"\n?</response>"},
        ),
        named('<tool_call>\n{"name": "NAME", "arguments": JSON}\n</tool_call>\n'),
        "I look.\n</think>\n",
        "<response>\nLet me look.\n</response>",
    ),
    "headers, and another name of the reasoning": ResponseCase(
        response_template(
            {
                "open_pattern": rf"{_HEADER}<\|use\|>",
                "close": "<|done|>",
                "transform": object_of(name="content.name", arguments="content.args"),
            },
            reasoning_content={"open_pattern": rf"{_HEADER}<\|idea\|>", "close": "<|done|>", "repeats": True, "join": ""},
            thinking=None,
            content={"open_pattern": rf"{_HEADER}<\|say\|>", "close": "<|done|>", "repeats": True, "join": ""},
        ),
        named('<|use|>{"name": "NAME", "args": JSON}<|done|>'),
        "<|idea|>I look.<|done|>",
        "<|say|>Let me look.<|done|>",
    ),
}

ACT = CASES["objects"].template
LINES = response_template(
    {"open_pattern": r"<do>(?P<name>\w+)\n", "close": "\n\n", "content": "kv-lines", "transform": NAMED}, thinking=None
)
