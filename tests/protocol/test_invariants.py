"""The six laws of the grammar, over random speeches of every family and every ending."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from responses_app.protocol.conformance import validate
from responses_app.protocol.deltas import Delta
from responses_app.protocol.events import Event
from responses_app.protocol.reducer import fold, ids_in_order
from responses_app.protocol.writer import Writer
from tests.support.protocol import openai_sdk as sdk
from tests.support.protocol.response_strategies import (
    ENDINGS,
    REASONING_OPTIONS,
    counted,
    crumbled,
    items,
    merged,
    response,
    speeches,
    write_response,
    writer,
)

Speech = tuple[list[Delta], str]
# A quick look by default; PROTOCOL_EXAMPLES=3000 for a long one.
EXAMPLES = int(os.environ.get("PROTOCOL_EXAMPLES", "20"))
few = settings(max_examples=max(EXAMPLES // 2, 1), deadline=None)
many = settings(max_examples=EXAMPLES, deadline=None)
TERMINAL = {"response.completed", "response.incomplete", "response.failed"}


@pytest.fixture(autouse=True, params=[None, "auto"], ids=["plain", "summary"])
def _reasoning_summary(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run each test without and with summaries of the reasoning."""
    monkeypatch.setitem(REASONING_OPTIONS, "summary", request.param)


def wire(value: Any) -> Any:
    return json.loads(json.dumps(value))


@many
@given(speeches())
def test_law_1_numbers_are_given_once_from_0_without_gaps(output: Speech) -> None:
    events, _ = write_response(*output)
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert all(list(event)[:2] == ["type", "sequence_number"] for event in events)


@many
@given(speeches())
def test_law_2_items_open_once_and_close_once_and_keep_their_names(output: Speech) -> None:
    events, _ = write_response(*output)
    opened = [event for event in events if event["type"] == "response.output_item.added"]
    closed = [event for event in events if event["type"] == "response.output_item.done"]
    assert [event["output_index"] for event in opened] == list(range(len(opened)))
    assert [event["output_index"] for event in closed] == list(range(len(opened)))
    names = ("id", "call_id", "type")
    assert [[event["item"].get(name) for name in names] for event in opened] == [
        [item.get(name) for name in names] for item in items(events)
    ]
    assert all(event["item_id"] == items(events)[event["output_index"]]["id"] for event in events if "item_id" in event)


@many
@given(speeches())
def test_law_3_the_terminal_event_says_nothing_that_was_not_said_but_status_usage_and_times(output: Speech) -> None:
    events, _ = write_response(*output)
    first, last = events[0]["response"], events[-1]["response"]
    assert list(first) == [key for key in last if key != "output_problems"]
    late = {"status", "usage", "completed_at", "error", "incomplete_details", "service_tier", "output"}
    assert {key for key in first if first[key] != last[key]} <= late
    assert last["output"] == [event["item"] for event in events if event["type"] == "response.output_item.done"]


@many
@given(speeches())
def test_law_4_folding_the_events_gives_the_final_object(output: Speech) -> None:
    events, writer = write_response(*output)
    assert fold(wire(events)) == wire(events[-1]["response"]) == wire(writer.response)


@many
@given(speeches(), st.data())
def test_law_4_folding_a_prefix_gives_the_snapshot_of_that_moment(output: Speech, data: st.DataObject) -> None:
    pieces, ending = output
    events, _ = write_response(pieces, ending)
    writer = Writer(response(), counted())
    written = writer.open()
    for piece in pieces[: data.draw(st.integers(0, len(pieces)))]:
        written += writer.write(piece)
    assert written == events[: len(written)]
    assert fold(written) == writer.response
    assert len(fold(written, open_items=True)["output"]) == sum(e["type"] == "response.output_item.added" for e in written)


@many
@given(speeches())
def test_law_5_grouping_changes_nothing(output: Speech) -> None:
    pieces, ending = output
    written = [write_response(group(pieces), ending)[0] for group in (list, merged, crumbled)]
    assert written[0][-1]["response"] == written[1][-1]["response"] == written[2][-1]["response"]
    assert len({len([e for e in events if not e["type"].endswith(".delta")]) for events in written}) == 1


@many
@given(speeches())
def test_law_6_there_is_one_terminal_event_and_it_is_last_and_the_open_item_is_closed_before(output: Speech) -> None:
    pieces, ending = output
    events, writer = write_response(pieces, ending)
    names = [event["type"] for event in events]
    assert [index for index, name in enumerate(names) if name in TERMINAL] == [len(names) - 1]
    assert names.count("response.output_item.added") == names.count("response.output_item.done")
    assert writer.ended
    if ending == "fail":
        assert names[-2] == "error"


@many
@given(speeches(), st.sampled_from(["in_progress", "queued"]))
def test_the_judge_finds_nothing(output: Speech, status: str) -> None:
    events, _ = write_response(*output, status=status)
    assert validate(wire(events)) == []


@many
@given(speeches(), st.data())
def test_the_judge_finds_nothing_in_a_resume_at_any_point(output: Speech, data: st.DataObject) -> None:
    """B5: a resume cursor may stand anywhere."""
    events, _ = write_response(*output)
    after = data.draw(st.integers(0, len(events) - 1))
    assert validate(wire(events[after + 1 :]), starting_after=after) == []


@few
@given(speeches())
def test_every_event_is_valid_for_the_official_client(output: Speech) -> None:
    events, _ = write_response(*output)
    for event in wire(events):
        assert sdk.validate(event).type == event["type"]
    assert sdk.validate_response(wire(events[-1]["response"])).status == events[-1]["response"]["status"]


@few
@given(speeches())
def test_the_accumulator_of_the_official_client_ends_with_the_same_items(output: Speech) -> None:
    events, writer = write_response(*output)
    assert [
        given_keys(item, written_item)
        for item, written_item in zip(sdk.accumulate(wire(events)), writer.output.items, strict=True)
    ] == wire(writer.output.items)


@few
@given(speeches())
def test_the_socket_accumulator_of_the_official_client_ends_with_the_same_response(output: Speech) -> None:
    events, writer = write_response(*output)
    final = sdk.accumulate_socket(wire(events))
    assert (final.id, final.status) == ("resp_1", writer.response["status"])
    assert [item.id for item in final.output] == [item["id"] for item in writer.output.items]


def given_keys(item: dict[str, Any], written_item: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in item.items() if key in written_item}


@many
@given(speeches())
def test_a_writer_that_is_given_the_same_ids_says_the_same(output: Speech) -> None:
    """A1, A2: a continued run hands out the logged ids first and goes on with the same names."""
    pieces, ending = output
    events, _ = write_response(pieces, ending)
    ids = iter(ids_in_order(events))
    writer = Writer(response(), lambda _prefix: next(ids))
    again: list[Event] = writer.open()
    for piece in pieces:
        again += writer.write(piece)
    assert again == events[: len(again)]


@many
@given(speeches(), st.integers(0, 100), st.sampled_from(["fail", "cancel"]))
def test_law_6_holds_for_a_log_whose_writer_is_lost(output: Speech, place: int, ending: str) -> None:
    pieces, _ = output
    first = writer()
    written = first.open()
    for piece in pieces[: place % (len(pieces) + 1)]:
        written += first.write(piece)
    written = wire(written)
    last = Writer.restore(written, counted())
    whole = written + wire(ENDINGS[ending](last))
    assert validate(whole) == []
    assert fold(whole) == whole[-1]["response"]
