"""Stop sequences end the text at the same position for every grouping of tokens."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import example, given
from hypothesis import strategies as st

from responses_app.dialects.base import OutputParser
from responses_app.dialects.stop_sequences import with_stop_sequences
from responses_app.engine_interface import Chunk
from responses_app.protocol.deltas import Arguments, Call, Delta, EndItem, ReasoningDelta, TextDelta
from tests.support.dialects.call_events import ScriptedParser

LETTERS = st.text("ab", max_size=14)


def parse_all(pieces: list[Delta], stops: list[str]) -> list[Delta]:
    """Return the deltas of all chunks until the parser is done."""
    return parse_with(with_stop_sequences(ScriptedParser(pieces), stops), pieces)


def parse_with(parser: OutputParser, pieces: list[Delta]) -> list[Delta]:
    """Feed a chunk for each of `pieces` until the parser is done, and return the deltas."""
    deltas: list[Delta] = []
    for _ in pieces:
        deltas += parser.feed(Chunk())
        if parser.done:
            break
    return deltas + parser.finish()


@example("baa", ["a", "baa"], {1, 2})
@given(LETTERS, st.lists(st.text("ab", min_size=1, max_size=4), min_size=1, max_size=3), st.sets(st.integers(1, 13)))
def test_the_text_ends_before_the_first_sequence(text: str, stops: list[str], cuts: set[int]) -> None:
    ends = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    pieces: list[Delta] = [TextDelta(text[a:b]) for a, b in pairwise(ends)]
    parser = with_stop_sequences(ScriptedParser(pieces), stops)
    deltas = parse_with(parser, pieces)
    complete = [(text.find(stop) + len(stop), text.find(stop), stop) for stop in stops if stop in text]
    _, first, name = min(complete) if complete else (0, len(text), None)
    assert parser.stop_sequence == name
    assert "".join(piece.text for piece in deltas if isinstance(piece, TextDelta)) == text[:first]


def test_every_piece_keeps_its_log_probabilities() -> None:
    pieces: list[Delta] = [TextDelta(one, logprobs=[{"token": one}]) for one in ("One ", "st", "ep. S", "TOP")]
    deltas = parse_all(pieces, ["STOP"])
    assert deltas == [*pieces[:2], TextDelta("ep. ", logprobs=[{"token": "ep. S"}])]


class FinishOnly:
    """Parser whose deltas all come with the end of the generation."""

    reasoning_tokens, unread_tokens, done, stop_sequence = 0, 0, False, None

    def __init__(self, *deltas: Delta) -> None:
        self.deltas = list(deltas)

    def feed(self, chunk: Chunk) -> list[Delta]:
        return []

    def finish(self) -> list[Delta]:
        return self.deltas


def test_a_stop_sequence_in_the_last_deltas_is_left_out() -> None:
    parser = with_stop_sequences(FinishOnly(TextDelta("One <"), TextDelta("stop> two")), ["<stop>"])
    assert parser.feed(Chunk()) == []
    assert parser.finish() == [TextDelta("One ")]
    assert parser.done


def test_reasoning_and_calls_are_not_looked_at() -> None:
    pieces: list[Delta] = [
        ReasoningDelta("x"),
        EndItem(),
        TextDelta("axb", phase="commentary"),
        Call("f"),
        Arguments("x"),
        EndItem(),
        TextDelta("y"),
    ]
    assert parse_all(pieces, ["xx", "by"]) == pieces


def test_a_message_of_another_phase_is_another_text() -> None:
    pieces: list[Delta] = [TextDelta("a", phase="commentary"), TextDelta("b", phase="final_answer")]
    assert parse_all(pieces, ["ab"]) == pieces


def test_without_sequences_nothing_is_in_between() -> None:
    inner = ScriptedParser([])
    assert with_stop_sequences(inner, []) is inner
