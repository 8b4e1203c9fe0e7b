"""Summary of reasoning: a copy of the text, in a part that is open beside the part of the text."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from responses_app.protocol.conformance import validate
from responses_app.protocol.deltas import Delta, EndItem, ReasoningDelta, TextDelta
from responses_app.protocol.events import Event
from responses_app.protocol.reducer import fold
from responses_app.protocol.writer import Writer
from tests.support.protocol.response_strategies import ENDINGS, counted, items, kinds, response, write_response

REASONING = {"effort": None, "summary": "auto", "context": None}
THOUGHT: list[Delta] = [ReasoningDelta("Let me"), ReasoningDelta(" see."), EndItem(), TextDelta("Yes.")]
DELTA = "reasoning_text.delta reasoning_summary_text.delta"


def summarized(pieces: Sequence[Delta], ending: str = "complete") -> list[Event]:
    return write_response(pieces, ending, reasoning=REASONING)[0]


@pytest.mark.parametrize("ending", sorted(ENDINGS))
def test_summary_is_streamed_beside_the_text(ending: str) -> None:
    events = summarized(THOUGHT, ending)
    assert " ".join(kinds(events)).startswith(
        "output_item.added content_part.added reasoning_text.delta reasoning_summary_part.added reasoning_summary_text.delta"
        f" {DELTA} reasoning_text.done content_part.done reasoning_summary_text.done reasoning_summary_part.done output_item.done"
    )
    thought = items(events)[0]
    assert thought["content"] == [{"type": "reasoning_text", "text": "Let me see."}]
    assert thought["summary"] == [{"type": "summary_text", "text": "Let me see."}]
    assert validate(events) == []
    assert fold(events) == events[-1]["response"]


def test_each_reasoning_item_has_its_own_summary() -> None:
    events = summarized([*THOUGHT, ReasoningDelta("Again."), EndItem()])
    texts = [[part["text"] for part in item["summary"]] for item in items(events) if item["type"] == "reasoning"]
    assert texts == [["Let me see."], ["Again."]]
    assert {event["summary_index"] for event in events if "summary" in event["type"]} == {0}


def test_summary_is_absent_where_none_is_asked_for() -> None:
    events, _ = write_response(THOUGHT)
    assert items(events)[0]["summary"] == []
    assert not [event for event in events if "summary" in event["type"]]


def test_encrypted_content_is_made_of_the_text_alone() -> None:
    sealed: list[object] = []

    def seal(item: Mapping[str, Any]) -> str:
        sealed.append(item["content"])
        return "sealed"

    writer = Writer(response(reasoning=REASONING), counted(), seal)
    writer.open()
    events = [event for delta in THOUGHT for event in writer.write(delta)]
    assert sealed == [[{"type": "reasoning_text", "text": "Let me see."}]]
    done = next(event for event in events if event["type"] == "response.output_item.done")
    assert (done["item"]["encrypted_content"], len(done["item"]["summary"])) == ("sealed", 1)


def test_encoded_events_have_the_summary_too() -> None:
    plain, encoded = (Writer(response(reasoning=REASONING), counted()) for _ in range(2))
    assert plain.open() == encoded.open()
    for delta in THOUGHT:
        expected = [json.dumps(event) for event in plain.write(delta)]
        encoded_events = encoded.write_encoded(delta, lambda event: json.dumps(event).encode())
        assert [json.dumps(json.loads(event.data)) for event in encoded_events] == expected
