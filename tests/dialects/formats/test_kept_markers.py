"""Outputs of a format that keeps the markers of calls it does not read."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given

from responses_app.dialects.formats.table import DEFAULT_OUTPUT, output_format
from responses_app.protocol.deltas import Call, TextDelta
from tests.support.dialects.parser_driver import byte_vocabulary, chat, parse_chunks, problems_of, sizes, turn

CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
HERMES = chat(output=replace(DEFAULT_OUTPUT, keeps_markers=True))
LFM2 = chat(output=replace(output_format("qwen3", "lfm2"), keeps_markers=True))
OTHERS = {
    "other_json": (HERMES, '<tool_call>\n{"do": "get_weather"}\n</tool_call>'),
    "words": (HERMES, "<tool_call>get_weather city=Oslo</tool_call>"),
    "closing_marker": (HERMES, "get_weather city=Oslo</tool_call>"),
    "unknown_name": (HERMES, CALL.replace("get_weather", "get weather")),
    "json_for_python": (LFM2, '<|tool_call_start|>[{"name": "get_weather", "arguments": {}}]<|tool_call_end|>'),
    "unfinished": (HERMES, "<tool_call>\nget_weather"),
}


@pytest.mark.parametrize("name", OTHERS)
@given(chunks=sizes)
def test_a_section_that_is_no_call_is_text_with_its_markers(name: str, chunks: list[int]) -> None:
    dialect, output = OTHERS[name]
    deltas = parse_chunks(dialect, turn(), byte_vocabulary().encode(f"{output}<|im_end|>"), chunks)
    assert "".join(delta.text for delta in deltas if isinstance(delta, TextDelta)) == output
    assert not any(isinstance(delta, Call) for delta in deltas)


@given(chunks=sizes)
def test_a_call_beside_such_a_section_is_read(chunks: list[int]) -> None:
    output = f"{CALL}\n<tool_call>sorry</tool_call>\n{CALL}"
    deltas = parse_chunks(HERMES, turn(), byte_vocabulary().encode(f"{output}<|im_end|>"), chunks)
    assert [delta.name for delta in deltas if isinstance(delta, Call)] == ["get_weather", "get_weather"]
    assert "".join(delta.text for delta in deltas if isinstance(delta, TextDelta)) == "<tool_call>sorry</tool_call>"


@pytest.mark.parametrize(
    ("text", "is_reported"),
    [
        ('get_weather{"city": "Oslo"}', True),
        ('"get_weather" ("Oslo")', True),
        ("get_weather\n<arg>", True),
        ("I could call get_weather for you.", False),
        ("my_get_weather(1)", False),
        ("get_weather_now(1)", False),
    ],
)
@given(chunks=sizes)
def test_the_name_of_a_tool_before_a_bracket_is_reported(text: str, is_reported: bool, chunks: list[int]) -> None:
    deltas = parse_chunks(HERMES, turn(), byte_vocabulary().encode(f"{text}<|im_end|>"), chunks, problems=True)
    assert problems_of(deltas) == ([("unknown_call_form", "")] if is_reported else [])
