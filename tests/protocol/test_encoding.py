"""Encoded events: the same bytes as orjson makes of the events of `Writer.write`."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from responses_app.protocol.deltas import Arguments, Call, CodeCall, Delta, EndItem, McpCall, ReasoningDelta, TextDelta
from responses_app.protocol.encoding import DeltaTemplate, EventFrame
from responses_app.protocol.errors import ProtocolError
from responses_app.protocol.events import Event
from tests.support.protocol.response_strategies import speeches, writer

CALLS = (Call("ask"), Call("ask", kind="custom"), CodeCall("cntr_1"), McpCall("docs", "ask"))
LOGPROBS = [{"token": "é", "logprob": -0.25, "bytes": [195, 169], "top_logprobs": []}]
STRANGE = 'a"\\/\x00\x08\t\n\x0c\r\x1f\x7f\x85é€\u2028\ufeff😀'


def encoded(deltas: list[Delta]) -> list[EventFrame]:
    one = writer()
    one.open()
    return [event for delta in deltas for event in one.write_encoded(delta, orjson.dumps)]


def dumped(deltas: list[Delta]) -> list[EventFrame]:
    one = writer()
    one.open()
    events = [event for delta in deltas for event in one.write(delta)]
    return [EventFrame(event["sequence_number"], event["type"], orjson.dumps(event)) for event in events]


@given(speeches())
def test_encoded_events_of_any_speech_have_the_bytes_of_its_events(response: tuple[list[Delta], str]) -> None:
    assert encoded(response[0]) == dumped(response[0])


@given(st.lists(st.tuples(st.text(max_size=8), st.booleans(), st.sampled_from([None, "commentary", "final_answer"]))))
def test_texts_with_log_probabilities_and_phases(texts: list[tuple[str, bool, str | None]]) -> None:
    deltas: list[Delta] = [TextDelta(text, LOGPROBS if has_logprobs else (), phase) for text, has_logprobs, phase in texts]  # type: ignore[arg-type]
    assert encoded(deltas) == dumped(deltas)


@pytest.mark.parametrize("opening", CALLS, ids=lambda call: f"{type(call).__name__}-{getattr(call, 'kind', '')}")
@given(texts=st.lists(st.text(max_size=8)))
def test_arguments_of_calls(opening: Delta, texts: list[str]) -> None:
    deltas = [opening, *map(Arguments, texts), EndItem()]
    assert encoded(deltas) == dumped(deltas)


@pytest.mark.parametrize("kind", [TextDelta, ReasoningDelta])
def test_every_character_that_json_escapes(kind: type[TextDelta | ReasoningDelta]) -> None:
    deltas: list[Delta] = [kind("a"), kind(STRANGE), kind("b"), kind("")]
    assert encoded(deltas) == dumped(deltas)


def test_more_text_of_an_open_item_needs_no_encoder() -> None:
    one = writer()
    one.open()
    one.write(TextDelta("a"))

    def refuse(event: Event) -> bytes:
        raise AssertionError(event)

    assert [event.number for event in one.write_encoded(TextDelta("b"), refuse)] == [5]
    assert [event["sequence_number"] for event in one.write(TextDelta("c"))] == [6]


def test_text_counts_for_the_snapshot() -> None:
    one = writer()
    one.open()
    for text in "abc":
        one.write_encoded(TextDelta(text), orjson.dumps)
    one.cancel()
    assert one.output.items[0]["content"][0]["text"] == "abc"


def test_a_writer_that_does_not_run_refuses_deltas() -> None:
    with pytest.raises(ProtocolError):
        writer().write_encoded(TextDelta("a"), orjson.dumps)


def test_complete_arguments_take_no_more_text() -> None:
    one = writer()
    one.open()
    for delta in (CodeCall("cntr_1"), Arguments("1"), EndItem()):
        one.write(delta)
    with pytest.raises(ProtocolError):
        one.write_encoded(Arguments("2"), orjson.dumps)


def test_a_template_keeps_the_order_of_the_keys() -> None:
    event = {"type": "x", "item_id": "a", "output_index": 3, "delta": "", "logprobs": []}
    whole = {"type": "x", "sequence_number": 12, "item_id": "a", "output_index": 3, "delta": "é", "logprobs": []}
    assert DeltaTemplate(event).encode(12, "é").data == orjson.dumps(whole)
