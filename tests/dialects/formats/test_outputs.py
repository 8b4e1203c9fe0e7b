"""Parsing of declared output formats: texts, calls and reasoning of each format. `test_mutations` tries any grouping."""

from __future__ import annotations

import json
from functools import cache
from typing import cast

import pytest

from responses_app.dialects.chat.dialect import ChatDialect
from responses_app.dialects.chat.template import ChatTemplate
from responses_app.dialects.formats.table import CALLS, REASONING, output_format
from responses_app.protocol.deltas import Arguments, Call, Delta, ReasoningDelta, TextDelta
from tests.support.dialects.call_texts import CALL_TEXTS, OTHER_TEXTS, REPORTED, TOOLS
from tests.support.dialects.parser_driver import CHATML, END, byte_vocabulary, parse_chunks, turn
from tests.support.hypothesis_profile import examples

ALL = {name: (name, texts) for name, texts in CALL_TEXTS.items()} | OTHER_TEXTS
OSLO, ROM = ("get_weather", {"city": "Oslo"}), ("get_weather", {"city": "Rom"})
STOP = "<|pad|>"
# Every so many tokens an output is cut.
STEP = 21 // examples(3)


@cache
def dialect(reasoning_parser: str | None, tool_parser: str | None) -> ChatDialect:
    output = output_format(reasoning_parser, tool_parser)
    assert output is not None
    vocabulary = byte_vocabulary(output.markers)
    stop = vocabulary.id(STOP)
    assert stop is not None
    return ChatDialect(vocabulary, ChatTemplate(CHATML), [stop], output)


TURN = turn(tools=TOOLS)


def parse(text: str, tool_parser: str | None, reasoning_parser: str | None = None) -> list[Delta]:
    return parse_chunks(dialect(reasoning_parser, tool_parser), TURN, byte_vocabulary().encode(text))


def items(deltas: list[Delta]) -> list[object]:
    """Return texts, ("reasoning", text) and (name, arguments as an object)."""
    read_items: list[object] = []
    for delta in deltas:
        if isinstance(delta, TextDelta):
            read_items.append(delta.text)
        elif isinstance(delta, ReasoningDelta):
            read_items.append(("reasoning", delta.text))
        elif isinstance(delta, Call):
            read_items.append((delta.name, {}))
        elif isinstance(delta, Arguments):
            name, _ = cast("tuple[str, object]", read_items[-1])
            read_items[-1] = (name, json.loads(delta.text))
    return read_items


def test_every_declared_format_has_texts() -> None:
    assert set(CALL_TEXTS) | {"mimo"} == set(CALLS)


@pytest.mark.parametrize("name", ALL)
def test_single_call(name: str) -> None:
    parser, texts = ALL[name]
    assert items(parse(texts.one + STOP, parser)) == [OSLO]


@pytest.mark.parametrize("name", ALL)
def test_two_calls(name: str) -> None:
    parser, texts = ALL[name]
    assert items(parse(texts.two + STOP, parser)) == [OSLO, ROM]


@pytest.mark.parametrize("name", ALL)
def test_call_without_arguments(name: str) -> None:
    parser, texts = ALL[name]
    assert items(parse(texts.empty + STOP, parser)) == [("clock", {})]


@pytest.mark.parametrize("name", ALL)
def test_arguments_of_all_types(name: str) -> None:
    parser, texts = ALL[name]
    assert items(parse(texts.typed + STOP, parser)) == [("report", json.loads(REPORTED))]


@pytest.mark.parametrize("name", ALL)
def test_text_before_calls(name: str) -> None:
    parser, texts = ALL[name]
    assert items(parse("I look.\n\n" + texts.two + STOP, parser)) == ["I look.", OSLO, ROM]


@pytest.mark.parametrize("name", ALL)
def test_text_between_calls(name: str) -> None:
    parser, texts = ALL[name]
    assert items(parse(texts.one + "\nAnd\n" + texts.one + STOP, parser)) == [OSLO, "And", OSLO]


@pytest.mark.parametrize("name", [*CALL_TEXTS, "mimo"])
@pytest.mark.parametrize(
    "text", ["Hello.", "a < b [1, 2] {x} 2>1 f(x) \u00e9", 'In JSON: {"a": [1, {"b": null}]}.', "[no call]"]
)
def test_text_without_calls_is_unchanged(name: str, text: str) -> None:
    assert parse(text + STOP, name) == [TextDelta(text), END]


@pytest.mark.parametrize("name", ALL)
def test_a_cut_call_has_a_beginning_of_the_arguments(name: str) -> None:
    parser, texts = ALL[name]
    tokens = byte_vocabulary().encode(texts.typed)
    whole = items(parse(texts.typed + STOP, parser))
    complete = "".join(delta.text for delta in parse(texts.typed + STOP, parser) if isinstance(delta, Arguments))
    for size in range(0, len(tokens), STEP):
        deltas = parse_chunks(dialect(None, parser), TURN, tokens[:size])
        names = [delta.name for delta in deltas if isinstance(delta, Call)]
        assert names in ([], ["report"])
        written = "".join(delta.text for delta in deltas if isinstance(delta, Arguments))
        assert complete.startswith(written)
    assert whole


@pytest.mark.parametrize("name", REASONING)
def test_reasoning_before_text(name: str) -> None:
    reasoning = REASONING[name]
    text = f"{reasoning.begins[0]}{reasoning.title or chr(10)}Hm.\n{reasoning.ends[0]}\n\nHello."
    assert items(parse(text + STOP, None, name)) == [("reasoning", "Hm."), "Hello."]


@pytest.mark.parametrize("name", REASONING)
def test_text_without_reasoning(name: str) -> None:
    assert items(parse("Hello." + STOP, None, name)) == ["Hello."]


def test_value_of_another_type_stays_json() -> None:
    text = "<tool_call>\n<function=report>\n<parameter=days>\n2.5\n</parameter>\n</function>\n</tool_call>"
    assert items(parse(text + STOP, "qwen3_coder")) == [("report", {"days": 2.5})]


@pytest.mark.parametrize(
    ("text", "is_call"),
    [
        ('{"name": "dance", "parameters": {"style": "tango"}}', True),
        ('{"name": "dance", "parameters": 3}', False),
        ('{"name": "Ada"}', False),
        ('{"name": "Ada", "age": {"years": 36}}', False),
    ],
)
def test_object_without_a_marker_is_a_call_if_it_has_arguments(text: str, is_call: bool) -> None:
    read_items = items(parse(text + STOP, "llama3_json"))
    assert read_items == ([("dance", {"style": "tango"})] if is_call else [text])
