"""Several open items: calls that wait for their results behind the item that the parser writes to."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from responses_app.protocol.conformance import validate
from responses_app.protocol.deltas import (
    Arguments,
    CodeCall,
    CodeResult,
    CodeStarted,
    Delta,
    EndItem,
    FileResult,
    FileSearch,
    ForItem,
    McpCall,
    McpList,
    McpResult,
    McpTools,
    ReasoningDelta,
    SearchStarted,
    TextDelta,
    WebResult,
    WebSearch,
)
from responses_app.protocol.errors import ProtocolError
from responses_app.protocol.events import Event
from responses_app.protocol.reducer import fold, ids_in_order
from responses_app.protocol.writer import Writer
from tests.support.protocol import openai_sdk as sdk
from tests.support.protocol.response_strategies import (
    ENDINGS,
    REASONING_OPTIONS,
    SEARCHED,
    TOOL,
    USAGE,
    items,
    kinds,
    parallel_speeches,
    response,
    write_response,
)

EXAMPLES = int(os.environ.get("PROTOCOL_EXAMPLES", "15"))
some = settings(max_examples=EXAMPLES, deadline=None)
Pair = tuple[list[Delta], list[Delta]]

TWO_CALLS: Final[list[Delta]] = [
    McpCall("m", "a"),
    Arguments('{"a":1}'),
    CodeCall("c"),
    Arguments("1"),
    TextDelta("meanwhile"),
    ForItem(1, CodeStarted()),
    ForItem(0, McpResult("first")),
    TextDelta(" more"),
    ForItem(1, CodeResult([{"type": "logs", "logs": "2"}])),
]


@pytest.fixture(autouse=True, params=[None, "auto"], ids=["plain", "summary"])
def _reasoning_summary(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run each test without and with summaries of the reasoning."""
    monkeypatch.setitem(REASONING_OPTIONS, "summary", request.param)


def wire(value: Any) -> Any:
    return json.loads(json.dumps(value))


def encrypt(item: Any) -> str:
    return f"sealed {json.dumps(item, sort_keys=True)}"


def numbered_ids(start: int) -> Callable[[str], str]:
    numbers = count(start)
    return lambda prefix: f"{prefix}{next(numbers)}"


def started(pieces: Sequence[Delta]) -> tuple[list[Event], Writer]:
    w = Writer(response(), numbered_ids(0), encrypt)
    events = w.open()
    for piece in pieces:
        events += w.write(piece)
    return events, w


def by_item(events: Sequence[Event]) -> dict[int, list[Event]]:
    """The events of each item, without their numbers."""
    events_by_item: dict[int, list[Event]] = {}
    for event in events:
        if "output_index" in event:
            events_by_item.setdefault(event["output_index"], []).append(
                {k: v for k, v in event.items() if k != "sequence_number"}
            )
    return events_by_item


# Examples


def test_calls_wait_for_their_results_while_the_model_goes_on() -> None:
    events, _ = write_response(TWO_CALLS)
    assert [
        (event["output_index"], event["type"].removeprefix("response.")) for event in events if "output_index" in event
    ] == [
        (0, "output_item.added"),
        (0, "mcp_call.in_progress"),
        (0, "mcp_call_arguments.delta"),
        (0, "mcp_call_arguments.done"),
        (1, "output_item.added"),
        (1, "code_interpreter_call.in_progress"),
        (1, "code_interpreter_call_code.delta"),
        (1, "code_interpreter_call_code.done"),
        (2, "output_item.added"),
        (2, "content_part.added"),
        (2, "output_text.delta"),
        (1, "code_interpreter_call.interpreting"),
        (0, "mcp_call.completed"),
        (0, "output_item.done"),
        (2, "output_text.delta"),
        (1, "code_interpreter_call.completed"),
        (1, "output_item.done"),
        (2, "output_text.done"),
        (2, "content_part.done"),
        (2, "output_item.done"),
    ]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert validate(events) == []


def test_the_snapshot_has_the_items_in_the_order_of_their_indexes() -> None:
    events, w = write_response(TWO_CALLS)
    assert [item["type"] for item in items(events)] == ["mcp_call", "code_interpreter_call", "message"]
    assert w.output.items == items(events)
    events, w = started([McpCall("m", "a"), CodeCall("c"), ForItem(1, CodeResult())])
    assert (
        [item["type"] for item in w.output.items]
        == [item["type"] for item in fold(events)["output"]]
        == ["code_interpreter_call"]
    )


def test_a_break_ends_the_arguments_and_leaves_the_call_open() -> None:
    events, w = started([McpCall("m", "a"), EndItem()])
    assert kinds(events)[-2:] == ["mcp_call_arguments.delta", "mcp_call_arguments.done"]
    assert w.output.items == []
    assert kinds(w.write(ForItem(0, McpResult("o")))) == ["mcp_call.completed", "output_item.done"]


@pytest.mark.parametrize("ending", ["cut", "fail", "cancel"])
def test_an_ending_closes_all_open_items_in_order(ending: str) -> None:
    events, w = write_response(
        [McpCall("m", "a"), WebSearch(), McpList("m"), CodeCall("c"), ReasoningDelta("r"), TextDelta("t")], ending
    )
    done = [event["output_index"] for event in events if event["type"] == "response.output_item.done"]
    assert done == [4, 0, 1, 2, 3, 5]
    assert [item.get("status") for item in w.output.items] == [
        "incomplete",
        "incomplete",
        None,
        "incomplete",
        "completed",
        "incomplete",
    ]
    assert validate(events) == []


@pytest.mark.parametrize("piece", [McpCall("m", "t"), McpList("m"), CodeCall("c"), WebSearch(), FileSearch()])
def test_response_does_not_complete_while_an_earlier_call_is_open(piece: Delta) -> None:
    _, w = started([piece, TextDelta("a")])
    with pytest.raises(ProtocolError, match="no result"):
        w.complete(1, USAGE)


REFUSED: Final[dict[str, tuple[list[Delta], Delta]]] = {
    "an index without an item": ([TextDelta("a")], ForItem(1, McpResult("o"))),
    "a closed item": ([McpCall("m", "t"), McpResult("o")], ForItem(0, McpResult("o"))),
    "the result of another family": ([McpCall("m", "t"), TextDelta("a")], ForItem(0, WebResult(SEARCHED))),
    "progress of another family": ([McpCall("m", "t"), TextDelta("a")], ForItem(0, SearchStarted())),
    "text": ([TextDelta("a")], ForItem(0, TextDelta("b"))),
    "an item that opens": ([McpCall("m", "t")], ForItem(0, WebSearch())),
    "the end of an item": ([McpCall("m", "t")], ForItem(0, EndItem())),
    "another address": ([McpCall("m", "t")], ForItem(0, ForItem(0, McpResult("o")))),
    "arguments that were ended by the next item": ([McpCall("m", "t"), TextDelta("a")], ForItem(0, Arguments("{}"))),
    "tools for a call": ([McpCall("m", "t"), TextDelta("a")], ForItem(0, McpTools([TOOL]))),
    "files for a web search": ([WebSearch(), TextDelta("a")], ForItem(0, FileResult([]))),
}


@pytest.mark.parametrize("name", REFUSED)
def test_writer_refuses_a_delta_of_another_family_and_is_unchanged(name: str) -> None:
    before, piece = REFUSED[name]
    (_, w), (_, calm) = started(before), started(before)
    with pytest.raises(ProtocolError):
        w.write(piece)
    assert w.fail("server_error", "Our bug.") == calm.fail("server_error", "Our bug.")


def test_the_current_item_may_be_addressed_too() -> None:
    pieces: list[Delta] = [McpCall("m", "t"), ForItem(0, Arguments("{}")), ForItem(0, McpResult("o"))]
    assert write_response(pieces)[0] == write_response([McpCall("m", "t"), Arguments("{}"), McpResult("o")])[0]


# Laws


@some
@given(parallel_speeches())
def test_any_interleaving_reduces_to_the_snapshot_of_the_sequential_execution(pair: Pair) -> None:
    (one, _), (other, w) = write_response(pair[0]), write_response(pair[1])
    assert fold(wire(other)) == wire(fold(one)) == wire(w.response)
    assert by_item(one) == by_item(other)
    assert validate(wire(other)) == []


@some
@given(parallel_speeches())
def test_ids_and_output_indexes_never_change(pair: Pair) -> None:
    events, _ = write_response(pair[1])
    final = items(events)
    opened = [event for event in events if event["type"] == "response.output_item.added"]
    assert [event["output_index"] for event in opened] == list(range(len(final)))
    for event in events:
        if "output_index" in event:
            item = final[event["output_index"]]
            assert event.get("item_id", item["id"]) == item["id"]
            assert all(event.get("item", item).get(key) == item.get(key) for key in ("id", "call_id", "type"))


@some
@given(parallel_speeches(), st.sampled_from(sorted(ENDINGS)))
def test_a_writer_that_is_restored_at_any_cut_goes_on_with_the_same_bytes(pair: Pair, ending: str) -> None:
    pieces = pair[1]
    events, w = started(pieces)
    events = wire(events + ENDINGS[ending](w))
    for cut in range(len(pieces) + 1):
        written = wire(started(pieces[:cut])[0])
        restored = Writer.restore(written, numbered_ids(len(ids_in_order(written))), encrypt)
        remaining_events = [event for piece in pieces[cut:] for event in restored.write(piece)] + ENDINGS[ending](restored)
        assert json.dumps(written + wire(remaining_events)) == json.dumps(events)


@some
@given(parallel_speeches(), st.data())
def test_a_log_that_ends_anywhere_can_be_ended(pair: Pair, data: st.DataObject) -> None:
    written, w = started(pair[1][: data.draw(st.integers(0, len(pair[1])))])
    assert fold(written) == w.response
    assert len(fold(written, open_items=True)["output"]) == sum(e["type"] == "response.output_item.added" for e in written)
    last = Writer.restore(wire(written), numbered_ids(0))
    ending = data.draw(st.sampled_from(["cut", "fail", "cancel"]))
    whole = wire(written + ENDINGS[ending](last))
    assert validate(whole) == []
    assert fold(whole) == whole[-1]["response"]
    assert [event["sequence_number"] for event in whole] == list(range(len(whole)))


@settings(max_examples=max(EXAMPLES // 4, 1), deadline=None)
@given(parallel_speeches())
def test_the_official_client_accepts_interleaved_items(pair: Pair) -> None:
    events, w = write_response(pair[1])
    assert [item["id"] for item in sdk.accumulate(wire(events))] == [item["id"] for item in w.output.items]
    assert [item.id for item in sdk.accumulate_socket(wire(events)).output] == [item["id"] for item in w.output.items]


# The checker


def changed(**changes: Any) -> Callable[[list[Event]], list[Event]]:
    """Change the event that ends the code of `TWO_CALLS`."""

    def change(events: list[Event]) -> list[Event]:
        return [
            {**event, **changes} if event["type"] == "response.code_interpreter_call_code.done" else event for event in events
        ]

    return change


def moved(type_: str, place: int) -> Callable[[list[Event]], list[Event]]:
    """Move the first event of a type to another place in the stream."""

    def move(events: list[Event]) -> list[Event]:
        event = next(event for event in events if event["type"] == type_)
        other_events = [other for other in events if other is not event]
        order = [*other_events[:place], event, *other_events[place:]]
        return [{**event, "sequence_number": number} for number, event in enumerate(order)]

    return move


def without(type_: str, index: int) -> Callable[[list[Event]], list[Event]]:
    """Leave out the events of a type for an item."""

    def drop(events: list[Event]) -> list[Event]:
        kept_events = [event for event in events if (event["type"], event.get("output_index")) != (type_, index)]
        return [{**event, "sequence_number": number} for number, event in enumerate(kept_events)]

    return drop


def swapped(events: list[Event]) -> list[Event]:
    """Exchange two items of the terminal snapshot."""
    last = events[-1]["response"]
    return [*events[:-1], {**events[-1], "response": {**last, "output": [last["output"][n] for n in (1, 0, 2)]}}]


UNLAWFUL: Final = {
    "the index of another open item": (changed(output_index=0), "I2"),
    "the id of another open item": (changed(item_id="mcp_0"), "I2"),
    "the index of no item": (changed(output_index=7), "I2"),
    "other text than the deltas": (changed(code="2"), "C3"),
    "progress before the arguments are done": (moved("response.code_interpreter_call.interpreting", 8), "I7"),
    "progress behind the end of the item": (moved("response.mcp_call.completed", 19), "I4"),
    "text behind the end of the item": (moved("response.output_text.delta", 21), "I4"),
    "an item that stays open": (without("response.output_item.done", 1), "I5"),
    "arguments without an end": (without("response.mcp_call_arguments.done", 0), "C4"),
    "an item that opens out of turn": (moved("response.output_item.added", 8), "I1"),
    "another order in the snapshot": (swapped, "T6"),
}


@pytest.mark.parametrize("name", UNLAWFUL)
def test_the_checker_finds_what_is_unlawful_among_open_items(name: str) -> None:
    change, rule = UNLAWFUL[name]
    events: list[Event] = wire(write_response(TWO_CALLS)[0])
    assert validate(events) == []
    assert rule in {broken.rule for broken in validate(change(events))}
