"""Broken outputs of every declared format: no exception, no text lost, the same result in any grouping.

Dropped are markers, the punctuation and the ids of calls, and white space. An output problem has the text that a cut drops.
"""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from responses_app.dialects.formats.base import OutputFormat
from responses_app.dialects.formats.reader import Reader, Steps
from responses_app.dialects.formats.table import REASONING, output_format
from tests.support.dialects.call_texts import CALL_TEXTS, OTHER_TEXTS
from tests.support.dialects.mutations import EXAMPLES, FEWER, WORD, Change, changes, mutate
from tests.support.dialects.scanned import parse, text_of

ALL = {name: (name, texts) for name, texts in CALL_TEXTS.items()} | OTHER_TEXTS
# Ids of calls are not shown.
_IDS = re.compile(
    r"\[CALL_ID\].*?(?=\[ARGS\]|\{|$)"
    r"|\"tool_call_id\".*?(?=\"tool_name\"|$)"
    r"|<\|tool_call:begin\|>.*?(?=<\|tool_call:name\|>|$)",
    re.DOTALL,
)
BEFORE, AFTER = ("", "Hello. ", "<think>\nHm.\n</think>\n\n"), ("", " Bye.")


def format_of(parser: str) -> OutputFormat:
    output = output_format(parser if parser in REASONING else "qwen3", parser)
    assert output is not None
    return output


def examples_of(name: str) -> int:
    """Return the number of mutations: fewer for a format whose syntax a format before has."""
    kinds = [type(calls.syntax) for parser, _ in ALL.values() if (calls := format_of(parser).calls)]
    at = list(ALL).index(name)
    return FEWER if kinds[at] in kinds[:at] else EXAMPLES


@pytest.mark.parametrize("name", ["pythonic", "llama4_pythonic", "granite_without_marker"])
def test_opening_brackets_are_read_once(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading each bracket again from each bracket before takes quadratic time."""
    steps, skip_space = 0, Reader.skip_space

    def counted(reader: Reader, more: str = "") -> Steps[None]:
        nonlocal steps
        before = reader.at
        yield from skip_space(reader, more)
        steps += 1 + reader.at - before

    monkeypatch.setattr(Reader, "skip_space", counted)
    parse(format_of(ALL[name][0]), ["[" * 1000])
    assert 0 < steps < 5000


@pytest.mark.parametrize("name", ALL)
def test_broken_output_loses_no_word_and_ignores_grouping(name: str) -> None:
    parser, texts = ALL[name]
    format = format_of(parser)

    @given(st.sampled_from(texts), st.sampled_from(BEFORE), st.sampled_from(AFTER), changes)
    @settings(max_examples=examples_of(name))
    def check(text: str, before: str, after: str, made: list[Change]) -> None:
        pieces = mutate(before + text + after, format.markers, made)
        output = "".join(pieces)
        parsed = parse(format, [output])
        assert parsed == parse(format, output) == parse(format, pieces)
        parsed_cut = parse(format, [output], cut=True)
        assert parsed_cut == parse(format, output, cut=True)
        words = set(WORD.findall(_IDS.sub("", output)))
        assert words <= set(WORD.findall(text_of(parsed)))
        assert words <= set(WORD.findall(text_of(parsed_cut)))

    check()
