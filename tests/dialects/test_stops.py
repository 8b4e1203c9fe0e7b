"""Stop sequences: the same end, whatever the grouping."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import example, given
from hypothesis import strategies as st

from responses_app.dialects.stops import stopped
from responses_app.engines.border import Chunk
from responses_app.grammar.pieces import Arguments, Break, Call, Piece, Reasoning, Text
from tests.dialects.test_functions import Said

LETTERS = st.text("ab", max_size=14)


def heard(pieces: list[Piece], stops: list[str]) -> list[Piece]:
    """What is said, chunk by chunk, until it is over."""
    listener = stopped(Said(pieces), stops)
    said: list[Piece] = []
    for _ in pieces:
        said += listener.hear(Chunk())
        if listener.done:
            break
    return said + listener.close()


@example("baa", ["a", "baa"], {1, 2})
@given(LETTERS, st.lists(st.text("ab", min_size=1, max_size=4), min_size=1, max_size=3), st.sets(st.integers(1, 13)))
def test_the_text_ends_before_the_first_sequence(text: str, stops: list[str], cuts: set[int]) -> None:
    ends = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    said = heard([Text(text[a:b]) for a, b in pairwise(ends)], stops)
    complete = [(text.find(stop) + len(stop), text.find(stop)) for stop in stops if stop in text]
    first = min(complete)[1] if complete else len(text)
    assert "".join(piece.text for piece in said if isinstance(piece, Text)) == text[:first]


def test_every_piece_keeps_its_log_probabilities() -> None:
    pieces: list[Piece] = [Text(one, logprobs=[{"token": one}]) for one in ("One ", "st", "ep. S", "TOP")]
    said = heard(pieces, ["STOP"])
    assert said == [*pieces[:2], Text("ep. ", logprobs=[{"token": "ep. S"}])]


def test_reasoning_and_calls_are_not_looked_at() -> None:
    pieces: list[Piece] = [Reasoning("x"), Break(), Text("axb", phase="commentary"), Call("f"), Arguments("x"), Break(), Text("y")]
    assert heard(pieces, ["xx", "by"]) == pieces


def test_a_message_of_another_phase_is_another_text() -> None:
    pieces: list[Piece] = [Text("a", phase="commentary"), Text("b", phase="final_answer")]
    assert heard(pieces, ["ab"]) == pieces


def test_without_sequences_nothing_is_in_between() -> None:
    inner = Said([])
    assert stopped(inner, []) is inner
