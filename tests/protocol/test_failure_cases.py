"""The failure cases of groups A, B, C, D and G that the grammar can rule out, by their ids."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from responses_app.protocol.deltas import (
    Arguments,
    Call,
    Delta,
    EndItem,
    McpCall,
    McpList,
    McpResult,
    McpTools,
    ReasoningDelta,
    TextDelta,
    WebResult,
    WebSearch,
)
from responses_app.protocol.events import Event
from responses_app.protocol.ids import PREFIXES
from responses_app.protocol.items.registry import FAMILIES
from responses_app.protocol.reducer import fold
from tests.support.protocol.openai_sdk import accumulate, validate
from tests.support.protocol.response_strategies import ENDINGS, SEARCHED, TOOL, items, kinds, response, write_response

SPEECH: list[Delta] = [
    McpList("m"),
    McpTools([TOOL]),
    ReasoningDelta("why"),
    ReasoningDelta("because"),
    McpCall("m", "t"),
    Arguments("{}"),
    McpResult("o"),
    WebSearch(),
    WebResult(SEARCHED),
    TextDelta("one"),
    TextDelta(" two"),
    TextDelta(" three"),
    Call("f"),
    Arguments('{"a":'),
    Arguments(" 1}"),
    Call("g"),
    Call("h", "custom"),
    Arguments("free"),
    TextDelta("end"),
]


@pytest.fixture(scope="module")
def events() -> list[Event]:
    written: list[Event] = json.loads(json.dumps(write_response(SPEECH)[0]))
    return written


def of(events: list[Event], name: str) -> list[Event]:
    return [event for event in events if event["type"] == f"response.{name}"]


def test_a1_a_call_id_is_the_same_at_added_done_and_completed(events: list[Event]) -> None:
    written = [
        [event["item"].get("call_id") for event in of(events, "output_item.added")],
        [event["item"].get("call_id") for event in of(events, "output_item.done")],
        [item.get("call_id") for item in items(events)],
    ]
    assert written[0] == written[1] == written[2]
    assert len([name for name in set(written[0]) if name]) == 3


def test_a2_a4_every_item_has_one_id_for_its_life_tool_items_too(events: list[Event]) -> None:
    ids: dict[int, set[str]] = {}
    for event in events:
        if "output_index" in event:
            ids.setdefault(event["output_index"], set()).add(event.get("item_id") or event["item"]["id"])
    for index, item in enumerate(items(events)):
        ids[index].add(item["id"])
    assert [len(item_ids) for item_ids in ids.values()] == [1] * len(items(events))
    assert len(set.union(*ids.values())) == len(ids)


def test_a3_ids_have_the_prefix_of_their_kind_from_the_first_event(events: list[Event]) -> None:
    assert all(
        event["item"]["id"].startswith(FAMILIES[event["item"]["type"]].id_prefix) for event in of(events, "output_item.added")
    )


def test_a3_no_prefix_is_shared() -> None:
    prefixes = [*PREFIXES.values(), *(family.id_prefix for family in FAMILIES.values())]
    assert len(set(prefixes)) == len(prefixes)


def test_a5_a8_every_inner_event_carries_the_id_of_its_item(events: list[Event]) -> None:
    inner = [event for event in events if "item_id" in event]
    assert inner
    assert all(event["item_id"] == items(events)[event["output_index"]]["id"] for event in inner)
    assert len({event["item_id"] for event in of(events, "reasoning_text.delta")}) == 1


def test_a6_a10_the_final_response_is_made_of_the_events(events: list[Event]) -> None:
    assert items(events) == [event["item"] for event in of(events, "output_item.done")]
    assert "".join(event["delta"] for event in of(events, "output_text.delta")) == "one two threeend"
    assert [part["text"] for item in items(events) if item["type"] == "message" for part in item["content"]] == [
        "one two three",
        "end",
    ]


def test_a7_nothing_but_what_was_said_is_an_item() -> None:
    written = items(
        write_response([ReasoningDelta("a"), TextDelta(""), EndItem(), Call("f"), TextDelta(""), ReasoningDelta("")])[0]
    )
    assert [item["type"] for item in written] == ["reasoning", "function_call"]


def test_a9_the_response_keeps_its_id(events: list[Event]) -> None:
    assert {event["response"]["id"] for event in events if "response" in event} == {"resp_1"}


def test_b1_b2_content_index_counts_from_0_in_every_item(events: list[Event]) -> None:
    indexes_by_item: dict[int, list[int]] = {}
    for event in of(events, "content_part.added"):
        indexes_by_item.setdefault(event["output_index"], []).append(event["content_index"])
    assert list(indexes_by_item.values()) == [[0], [0], [0]]


def test_b3_b4_output_index_is_dense_and_the_position_in_the_output(events: list[Event]) -> None:
    added = of(events, "output_item.added")
    assert [event["output_index"] for event in added] == list(range(len(added)))
    assert [event["item"]["id"] for event in added] == [item["id"] for item in items(events)]


def test_b5_the_official_client_rebuilds_by_index(events: list[Event]) -> None:
    assert [item["id"] for item in accumulate(events)] == [item["id"] for item in items(events)]


@pytest.mark.parametrize("ending", ENDINGS)
def test_c1_c6_whatever_opens_is_closed(ending: str) -> None:
    counts = Counter(kinds(write_response([*SPEECH, ReasoningDelta("a")], ending)[0]))
    pairs = {"output_item": "output_item", "content_part": "content_part"}
    assert all(counts[f"{name}.added"] == counts[f"{name}.done"] > 1 for name in pairs)
    assert counts["reasoning_text.done"] + counts["output_text.done"] == counts["content_part.added"]


def test_c2_a_call_without_arguments_says_an_empty_object() -> None:
    events, _ = write_response([Call("f")])
    assert kinds(events) == [
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
    ]
    assert (events[3]["delta"], events[4]["arguments"], events[5]["item"]["arguments"]) == ("{}", "{}", "{}")


def test_c2_blank_arguments_are_no_arguments() -> None:
    assert json.loads(items(write_response([Call("f"), Arguments(" "), Arguments("\n")])[0])[0]["arguments"]) == {}


def test_c3_every_call_has_its_arguments_done(events: list[Event]) -> None:
    assert len(of(events, "function_call_arguments.done")) == 2
    assert len(of(events, "custom_tool_call_input.done")) == len(of(events, "mcp_call_arguments.done")) == 1


def test_c4_created_and_in_progress_come_first(events: list[Event]) -> None:
    assert [(event["type"], event["sequence_number"]) for event in events[:2]] == [
        ("response.created", 0),
        ("response.in_progress", 1),
    ]


def test_c5_a_call_is_done_and_is_in_the_output(events: list[Event]) -> None:
    done = [event["item"] for event in of(events, "output_item.done") if event["item"]["type"] == "function_call"]
    assert [call["name"] for call in done] == ["f", "g"]
    assert all(call in items(events) for call in done)


def test_c7_a_part_is_added_before_its_first_delta(events: list[Event]) -> None:
    parts: set[Any] = set()
    for event in events:
        place = (event.get("output_index"), event.get("content_index"))
        if event["type"] == "response.content_part.added":
            parts.add(place)
        assert event.get("content_index") is None or place in parts


def test_c8_required_arrays_are_there_and_empty(events: list[Event]) -> None:
    added = {event["item"]["type"]: event["item"] for event in of(events, "output_item.added")}
    assert (added["message"]["content"], added["reasoning"]["summary"], added["mcp_list_tools"]["tools"]) == ([], [], [])
    parts = [event["part"] for event in of(events, "content_part.added") if event["part"]["type"] == "output_text"]
    assert [(part["annotations"], part["logprobs"]) for part in parts] == [([], [])] * 2


def test_c9_every_embedded_response_is_a_full_object(events: list[Event]) -> None:
    assert {frozenset(event["response"]) for event in events if "response" in event} == {frozenset(response())}


def test_c10_lists_and_nulls_that_clients_require_are_there(events: list[Event]) -> None:
    assert all(event["logprobs"] == [] for event in of(events, "output_text.delta") + of(events, "output_text.done"))
    assert all(validate(event) for event in events)


def test_c11_events_are_flat(events: list[Event]) -> None:
    assert all(isinstance(event["sequence_number"], int) for event in events)
    assert not any("sequence_number" in value for event in events for value in event.values() if isinstance(value, dict))


def test_c12_a_message_and_a_call_of_one_turn_are_items_of_their_own_in_order(events: list[Event]) -> None:
    assert [item["type"] for item in items(events)][4:] == [
        "message",
        "function_call",
        "function_call",
        "custom_tool_call",
        "message",
    ]


def test_c13_fragments_of_arguments_are_one_call() -> None:
    (call,) = items(write_response([Call("f"), *[Arguments(char) for char in '{"a": [1, 2]}']])[0])
    assert call["arguments"] == '{"a": [1, 2]}'


def test_d1_d2_d3_every_event_is_numbered_from_0(events: list[Event]) -> None:
    assert [event["sequence_number"] for event in events] == list(range(len(events)))


@pytest.mark.parametrize(
    ("ending", "type_", "status"),
    [
        ("complete", "response.completed", "completed"),
        ("cut", "response.incomplete", "incomplete"),
        ("fail", "response.failed", "failed"),
        ("cancel", "response.failed", "cancelled"),
    ],
)
def test_g1_g6_the_last_event_is_of_the_type_of_the_status(ending: str, type_: str, status: str) -> None:
    events, writer = write_response([TextDelta("a")], ending)
    assert (events[-1]["type"], events[-1]["response"]["status"], writer.response["status"]) == (type_, status, status)


def test_g2_the_cut_item_is_incomplete_and_earlier_ones_are_completed() -> None:
    written = items(write_response([ReasoningDelta("a"), TextDelta("b")], "cut")[0])
    assert [item["status"] for item in written] == ["completed", "incomplete"]


def test_g3_an_incomplete_response_says_why() -> None:
    assert write_response([TextDelta("a")], "cut")[1].response["incomplete_details"] == {"reason": "max_output_tokens"}


def test_folding_gives_what_every_client_sees(events: list[Event]) -> None:
    assert fold(events) == events[-1]["response"]
