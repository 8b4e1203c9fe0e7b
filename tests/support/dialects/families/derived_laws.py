"""Laws of derived formats of calls."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from responses_app.dialects.chat.structural_tags import ReasoningStart, constrain
from responses_app.dialects.formats.base import OutputFormat
from responses_app.dialects.toolset import toolset
from tests.support.dialects.mutations import FEWER, WORD, Change, changes, mutate
from tests.support.dialects.parser_driver import WEATHER, turn
from tests.support.dialects.scanned import parse, text_of


def check_strict_tools_are_constrained(output: OutputFormat) -> None:
    """Check that forced calls of a strict tool have a grammar."""
    strict = turn(tools=({**WEATHER, "strict": True},), tool_choice="required")
    assert constrain(strict, toolset(strict), output, ReasoningStart.NEVER) is not None


def check_broken_output(output: OutputFormat, call: str) -> None:
    """Check that changed texts with `call` lose no word, and that their parts do not matter."""

    @given(st.sampled_from(("", "Hello. ")), st.sampled_from(("", " Bye.")), st.integers(1, 2), changes)
    @settings(max_examples=FEWER)
    def check(before: str, after: str, count: int, made: list[Change]) -> None:
        pieces = mutate(before + call * count + after, output.markers, made)
        text = "".join(pieces)
        parsed, parsed_cut = parse(output, [text]), parse(output, [text], cut=True)
        assert parsed == parse(output, text) == parse(output, pieces)
        assert parsed_cut == parse(output, text, cut=True)
        assert set(WORD.findall(text)) <= set(WORD.findall(text_of(parsed)))
        assert set(WORD.findall(text)) <= set(WORD.findall(text_of(parsed_cut)))

    check()
