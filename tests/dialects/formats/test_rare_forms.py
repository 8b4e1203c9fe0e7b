"""Rare forms of calls and reasoning that models write, in any grouping, and the time that half markers take."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from responses_app.dialects.formats.reader import Reader
from responses_app.dialects.formats.scanner import FormatScanner
from responses_app.dialects.formats.table import output_format
from responses_app.dialects.text.delta_buffer import DeltaBuffer
from responses_app.protocol.deltas import Arguments, Call, Delta, EndItem, ReasoningDelta, TextDelta
from tests.support.dialects.parser_driver import joined

PLACE = {"type": "object", "properties": {"name": {"type": "string"}, "height": {"type": "number"}}}
TRIP = {
    "type": "object",
    "properties": {
        "place": {"$ref": "#/$defs/Place"},
        "stop": {"anyOf": [{"$ref": "#/$defs/Place"}, {"type": "null"}]},
        "code": {"type": "string"},
        "distance": {"type": "number"},
        "days": {"type": "integer"},
        "codes": {"type": "array", "items": {"type": "string"}},
    },
    "$defs": {"Place": PLACE},
}
SCHEMAS = {"plan_trip": TRIP, "run": {"type": "object", "properties": {"command": {"type": "string"}}}}


def parse(reasoning_parser: str | None, tool_parser: str, pieces: Sequence[str], *, thinking: bool = False) -> Sequence[Delta]:
    output = output_format(reasoning_parser, tool_parser)
    assert output is not None
    buffer, deltas = DeltaBuffer(), list[Delta]()
    scanner = FormatScanner(buffer, output, lambda _: True, SCHEMAS, thinking=thinking)
    for piece in pieces:
        scanner.feed(piece)
        deltas += buffer.take()
    scanner.end()
    return joined([*deltas, *buffer.take()])


def parse_in_groups(reasoning_parser: str | None, tool_parser: str, text: str, *, thinking: bool = False) -> Sequence[Delta]:
    """Parse a text whole and in groups; assert that the results are equal."""
    whole = parse(reasoning_parser, tool_parser, [text], thinking=thinking)
    for size in (1, 2, 5, 11):
        pieces = [text[start : start + size] for start in range(0, len(text), size)]
        assert parse(reasoning_parser, tool_parser, pieces, thinking=thinking) == whole
    return whole


def call_of(deltas: Sequence[Delta]) -> tuple[str, Mapping[str, Any]]:
    """Return name and arguments of the only call; assert that there is no text."""
    assert not [delta for delta in deltas if isinstance(delta, TextDelta)]
    (name,) = [delta.name for delta in deltas if isinstance(delta, Call)]
    return name, json.loads("".join(delta.text for delta in deltas if isinstance(delta, Arguments)))


def dsml(key: str, string: str, value: str) -> str:
    parameter = f'<｜DSML｜parameter name="{key}" string="{string}">{value}</｜DSML｜parameter>'
    return f'<｜DSML｜tool_calls>\n<｜DSML｜invoke name="plan_trip">\n{parameter}\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>'


def xml(key: str, value: str) -> str:
    return f"<tool_call>\n<function=plan_trip>\n<parameter={key}>{value}</parameter>\n</function>\n</tool_call>"


@pytest.mark.parametrize(
    ("parser", "text", "arguments"),
    [
        pytest.param("qwen3_coder", xml("place", '{"name": "Bergen"}'), {"place": {"name": "Bergen"}}, id="reference"),
        pytest.param("qwen3_coder", xml("stop", "null"), {"stop": None}, id="reference in an alternative"),
        pytest.param("qwen3_coder", xml("distance", "9007199254740993"), {"distance": 9007199254740993}, id="long integer"),
        pytest.param("qwen3_coder", xml("code", "\n a\n\n"), {"code": " a\n"}, id="padded text"),
        pytest.param("qwen3_coder", xml("code", "a\n"), {"code": "a\n"}, id="line break at the end alone"),
        pytest.param("deepseek_v4", dsml("days", "true", "4"), {"days": 4}, id="number marked as a string"),
        pytest.param("deepseek_v4", dsml("code", "true", "4"), {"code": "4"}, id="string"),
        pytest.param("deepseek_v4", dsml("arguments", "false", '{"days": 4}'), {"days": 4}, id="arguments in a parameter"),
        pytest.param("deepseek_v4", dsml("input", "true", '{"days": 4}'), {"days": 4}, id="arguments in a string"),
        pytest.param("deepseek_v4", dsml("input", "true", '{"x": 4}'), {"input": {"x": 4}}, id="object of other keys"),
        pytest.param("gemma4", "<|tool_call>call:plan_trip{code:0815}<tool_call|>", {"code": "0815"}, id="bare string"),
        pytest.param("gemma4", "<|tool_call>call:plan_trip{codes:[1,2]}<tool_call|>", {"codes": ["1", "2"]}, id="bare items"),
        pytest.param(
            "gemma4", '<|tool_call>call:plan_trip{place:{name:<|"|>Ber', {"place": {"name": "Ber"}}, id="end in a string"
        ),
        pytest.param("gemma4", "<|tool_call>call:plan_trip{codes:[7,", {"codes": ["7"]}, id="end in a list"),
        pytest.param("gemma4", "<|tool_call>call:plan_trip{days:4", {"days": 4}, id="end in a number"),
        pytest.param("mistral", "[TOOL_CALLS]plan_trip", {}, id="name alone"),
    ],
)
def test_rare_form_of_a_call_is_read(parser: str, text: str, arguments: object) -> None:
    assert call_of(parse_in_groups(None, parser, text)) == ("plan_trip", arguments)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("'sed -n '1,5p' notes.txt'", "sed -n '1,5p' notes.txt"),
        ("""'a "q" and 'r' \\ end'""", """a "q" and 'r' \\ end"""),
        ("'SELECT '''", "SELECT ''"),
        ("'it''s'", "it''s"),
        ("'one' 'two'", "onetwo"),
        ('"one \\"a\\"" "two"', 'one "a"two'),
        ("'cat << EOF\nfirst\nEOF'", "cat << EOF\nfirst\nEOF"),
        ("'python -c \"print(max('a', 'b'))\"'", "python -c \"print(max('a', 'b'))\""),
        (r"'it\'s \\ and \n'", "it's \\ and \n"),
        ("{'b', 'a'}", ["b", "a"]),
        ("[true, 'is true', null]", [True, "is true", None]),
        ("07", 7),
    ],
)
def test_python_value_that_python_refuses(value: str, expected: object) -> None:
    text = f"<|tool_call_start|>[run(command={value})]<|tool_call_end|>"
    assert call_of(parse_in_groups(None, "lfm2", text)) == ("run", {"command": expected})


def test_python_strings_end_before_the_next_argument() -> None:
    text = "<|tool_call_start|>[plan_trip(code='a', codes=['b', 'c'] , days = 2)]<|tool_call_end|>"
    assert call_of(parse_in_groups(None, "lfm2", text)) == ("plan_trip", {"code": "a", "codes": ["b", "c"], "days": 2})


@pytest.mark.parametrize(
    ("text", "thinking", "reasoning"),
    [
        ("thought\nHm.<channel|>Hello.", True, "Hm."),
        ("<|channel>thought<channel|>Hello.", False, ""),
        ("<|channel><|channel>thought\n<channel|>Hello.", False, ""),
        ("<|channel>thoughtful<channel|>Hello.", False, "thoughtful"),
    ],
)
def test_title_is_no_reasoning(text: str, thinking: bool, reasoning: str) -> None:
    deltas = parse_in_groups("gemma4", "gemma4", text, thinking=thinking)
    assert "".join(delta.text for delta in deltas if isinstance(delta, ReasoningDelta)) == reasoning
    assert [delta.text for delta in deltas if isinstance(delta, TextDelta)] == ["Hello."]


def test_end_marker_of_a_call_is_no_text_when_the_next_call_is_cut() -> None:
    section, call, name, end = "tool_calls_section_begin", "tool_call_begin", "tool_call_argument_begin", "tool_call_end"
    text = f"<|{section}|><|{call}|>functions.run:0<|{name}|>{{}}<|{end}|><|{call}|>functions.run:1"
    deltas = parse_in_groups(None, "kimi_k2", text)
    assert [delta.text for delta in deltas if isinstance(delta, TextDelta)] == ["functions.run:1"]


@pytest.mark.parametrize(
    ("parser", "marker"),
    [
        ("deepseek_v4", "<｜DSML｜invoke name="),
        ("kimi_k2", "<|tool_call_begin|>"),
        ("gemma4", "<|tool_call>"),
        ("functiongemma", "<start_function_call>"),
    ],
)
def test_repeated_markers_are_read_once(parser: str, marker: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading the rest of the text behind each marker takes quadratic time."""
    count, take = 0, Reader.pass_until

    def counted(reader: Reader, markers: Any, emit: Any) -> Any:
        nonlocal count
        before = reader.at
        taken = yield from take(reader, markers, emit)
        count += reader.at - before
        return taken

    monkeypatch.setattr(Reader, "pass_until", counted)
    parse(None, parser, [marker * 500])
    assert 0 < count < 3 * 500 * len(marker)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hm.\n[BEGIN FINAL RESPONSE]\nHello [1].", [ReasoningDelta("Hm."), TextDelta("Hello [1].")]),
        ("Hm.\n[BEGIN FINAL RESPONSE]\n[BEGIN", [ReasoningDelta("Hm."), TextDelta("[BEGIN")]),
        ("Hm.\n[BEGIN FINAL RESPONSE]\n[", [ReasoningDelta("Hm."), TextDelta("[")]),
        (
            'Hm.\n[BEGIN FINAL RESPONSE]\n[run(command="ls")]',
            [ReasoningDelta("Hm."), Call("run"), Arguments('{"command": "ls"}')],
        ),
    ],
)
def test_marker_that_begins_another_marker_does_not_depend_on_the_grouping(text: str, expected: list[Delta]) -> None:
    deltas = parse_in_groups("apriel", "pythonic", text, thinking=True)
    assert [delta for delta in deltas if isinstance(delta, ReasoningDelta | TextDelta | Call | Arguments)] == expected


@pytest.mark.parametrize(
    ("parser", "text", "arguments"),
    [
        ("cwm", "<tool: run>\nls -l\n  | wc\n</tool>", {"command": "ls -l\n  | wc"}),
        ("cwm", '<tool: run>\n{"command": "ls"}\n</tool>', {"command": "ls"}),
        ("cwm", "<tool: function>\nrun ls </tool>", {"command": "ls"}),
        ("cwm", "<tool: run>\n</tool>", {}),
        ("rwkv", '**Tool Call:**\n{"name": "run", "arguments": {"command": "ls"}}', {"command": "ls"}),
        ("functionary_v32", '>>>run\n{"command": "ls"}', {"command": "ls"}),
        (
            "solar_open",
            '<|tool_calls|><|tool_call:begin|>x1<|tool_call:name|>run<|tool_call:args|>{"command": "ls"}',
            {"command": "ls"},
        ),
        (
            "solar_open2",
            "<|tool_call:start|>run\n<|tool_arg:start|>command<|tool_arg:value|> ls \n<|tool_arg:end|>\n<|tool_call:end|>",
            {"command": " ls \n"},
        ),
    ],
)
def test_call_of_a_recent_family_is_read(parser: str, text: str, arguments: object) -> None:
    assert call_of(parse_in_groups(None, parser, text)) == ("run", arguments)


@pytest.mark.parametrize("text", ["Python asks >>> print(1)", "In the shell: <tool:\n>>> all", "a >>>b\n"])
def test_text_with_the_marker_of_recipients_stays(text: str) -> None:
    assert parse_in_groups(None, "functionary_v32", text) == [TextDelta(text), EndItem()]


@pytest.mark.parametrize(
    "text",
    [
        '{"type": "function", "function": {"name": "run", "arguments": {"command": "ls"}}}',
        '[{"id": "a", "function": {"arguments": {"command": "ls"}, "name": "run"}, "type": "function"}]',
        '{"type": "function", "function": "run", "parameters": {"command": "ls"}}',
    ],
)
@pytest.mark.parametrize("size", [1, 200])
def test_a_call_in_the_form_of_the_api_is_a_call(text: str, size: int) -> None:
    whole = f"<tool_call>\n{text}\n</tool_call>"
    pieces = [whole[at : at + size] for at in range(0, len(whole), size)]
    assert parse(None, "hermes", pieces) == [Call("run"), Arguments('{"command": "ls"}'), EndItem()]
