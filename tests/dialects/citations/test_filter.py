"""Annotations among the deltas of a parser, and in the events of a response."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responses_app.dialects.citations.filter import CitationFilter
from responses_app.dialects.citations.sources import DisplaySources, Sources, UploadedFileSource, WebSource
from responses_app.engine_interface import Chunk
from responses_app.protocol.deltas import Annotation, Call, Delta, EndItem, OutputProblem, ReasoningDelta, TextDelta
from tests.support.dialects.call_events import ScriptedParser
from tests.support.dialects.parser_driver import joined

EBB = WebSource("https://ebb.example", "Ebb")
REPORT = UploadedFileSource("file-1", "report.pdf")
SOURCES = Sources([EBB], {3: DisplaySources([(0, EBB)])}, {7: REPORT})
LINK = "[e](https://ebb.example)"
SHOWN = "([ebb.example](https://ebb.example))"


def logprob(token: str) -> dict[str, Any]:
    return {"token": token, "logprob": -0.1, "bytes": list(token.encode()), "top_logprobs": []}


def filtered(*deltas: Delta) -> list[Delta]:
    parser = CitationFilter(ScriptedParser(list(deltas)), SOURCES)
    return [one for _ in deltas for one in parser.feed(Chunk())] + parser.finish()


def test_annotation_follows_the_delta_that_completes_the_link() -> None:
    deltas = filtered(TextDelta("See [e](https://"), TextDelta("ebb.example) and"), TextDelta(" more."), EndItem())
    annotation = Annotation(EBB.annotation(4, 4 + len(LINK)))
    assert deltas == [
        TextDelta("See [e](https://"),
        TextDelta("ebb.example)"),
        annotation,
        TextDelta(" and"),
        TextDelta(" more."),
        EndItem(),
    ]


def test_positions_begin_anew_with_each_message() -> None:
    deltas = filtered(
        TextDelta(f"a {LINK}", phase="commentary"), TextDelta(LINK, phase="final_answer"), EndItem(), TextDelta(LINK)
    )
    starts = [delta.value["start_index"] for delta in deltas if isinstance(delta, Annotation)]
    assert starts == [2, 0, 0]


@pytest.mark.parametrize("delta", [EndItem(), Call("f"), ReasoningDelta("hm")])
def test_text_held_back_comes_before_the_next_item(delta: Delta) -> None:
    assert filtered(TextDelta("Fact【3†"), delta) == [TextDelta("Fact"), TextDelta("【3†"), delta]


def test_text_held_back_comes_at_the_end() -> None:
    assert filtered(TextDelta("【3", phase="final_answer")) == [TextDelta("【3", phase="final_answer")]


def test_problem_stays_behind_its_text() -> None:
    problem = OutputProblem("invalid_utf8", "", "open")
    assert filtered(TextDelta("【3"), problem, TextDelta("x")) == [TextDelta("【3x"), problem]
    assert filtered(TextDelta("x"), problem) == [TextDelta("x"), problem]


TOKENS = ["Fact", "【", "3", "†", "L", "1", "】", "【7†", "report.pdf】", ".", " ", LINK, "🦑"]


@given(st.lists(st.sampled_from(TOKENS), max_size=30))
def test_log_probabilities_stay_complete_and_in_order(tokens: Sequence[str]) -> None:
    deltas = filtered(*[TextDelta(token, [logprob(token)]) for token in tokens], EndItem())
    entries = [entry for delta in deltas if isinstance(delta, TextDelta) for entry in delta.logprobs]
    assert entries == [logprob(token) for token in tokens]


def test_marker_becomes_a_link_with_the_log_probabilities_of_its_tokens() -> None:
    tokens = ["Fact", "【", "3†L1", "】", "."]
    deltas = filtered(*[TextDelta(token, [logprob(token)]) for token in tokens])
    assert joined([delta for delta in deltas if isinstance(delta, TextDelta)]) == [
        TextDelta(f"Fact {SHOWN}.", tuple(map(logprob, tokens)))
    ]
