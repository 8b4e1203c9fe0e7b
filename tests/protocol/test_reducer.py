"""Folding rebuilds; it does not copy."""

from __future__ import annotations

from typing import Any

import pytest

from responses_app.protocol.deltas import (
    Annotation,
    Arguments,
    Call,
    CodeCall,
    CodeStarted,
    ReasoningDelta,
    SearchStarted,
    TextDelta,
    WebSearch,
)
from responses_app.protocol.errors import ProtocolError
from responses_app.protocol.reducer import fold, ids_in_order
from tests.support.protocol.response_strategies import CITATION, response, write_response, writer


def written_events(*pieces: Any) -> list[dict[str, Any]]:
    """The events of a speech that goes on."""
    w = writer()
    return [*w.open(), *(event for piece in pieces for event in w.write(piece))]


def test_output_comes_from_the_events_not_the_terminal_snapshot() -> None:
    events, _ = write_response([TextDelta("a")])
    events[-1] = {**events[-1], "response": {**events[-1]["response"], "output": []}}
    assert [item["content"][0]["text"] for item in fold(events)["output"]] == ["a"]


def test_deltas_outrank_the_done_item() -> None:
    events, _ = write_response([TextDelta("a"), Call("f"), Arguments("{}"), ReasoningDelta("r")])
    for event in events:
        if event["type"] == "response.output_item.done":
            event["item"] = {**event["item"], **{key: "other" for key in ("content", "arguments") if key in event["item"]}}
    message, call, reasoning = fold(events)["output"]
    assert (message["content"][0]["text"], call["arguments"], reasoning["content"][0]["text"]) == ("a", "{}", "r")


def test_status_usage_and_times_come_from_the_terminal_event() -> None:
    events, w = write_response([TextDelta("a")], "cut")
    assert {key: fold(events)[key] for key in ("status", "usage", "incomplete_details")} == {
        key: w.response[key] for key in ("status", "usage", "incomplete_details")
    }


def test_a_running_response_shows_its_closed_items() -> None:
    events = written_events(ReasoningDelta("r"), TextDelta("a"))
    assert [item["type"] for item in fold(events)["output"]] == ["reasoning"]
    assert fold(events)["status"] == "in_progress"


def test_open_items_are_shown_as_far_as_they_were_told() -> None:
    cited = written_events(TextDelta("a"), Annotation(CITATION), TextDelta("b"))
    assert fold(cited, open_items=True)["output"][0]["content"] == [
        {"type": "output_text", "text": "ab", "annotations": [CITATION], "logprobs": []},
    ]
    assert fold(written_events(Call("f"), Arguments('{"')), open_items=True)["output"][0]["arguments"] == '{"'


def test_open_tools_show_how_far_they_have_come() -> None:
    assert fold(written_events(WebSearch(), SearchStarted()), open_items=True)["output"][0]["status"] == "searching"
    assert fold(written_events(CodeCall("c"), CodeStarted()), open_items=True)["output"][0]["status"] == "interpreting"


def test_a_queued_response_is_its_last_snapshot() -> None:
    w = writer(status="queued")
    events = w.open()
    assert fold(events) == response(status="queued")
    assert fold(events + w.start()) == response()


def test_events_that_were_sent_fold_like_events_that_were_logged() -> None:
    events, w = write_response([TextDelta("a")])
    sent = [{**event, "stream_id": "lane", "obfuscation": "xx"} for event in events]
    assert fold(sent) == w.response


def test_foreign_events_are_passed_over() -> None:
    events, w = write_response([TextDelta("a")])
    assert fold([*events[:3], {"type": "acme:trace"}, *events[3:]]) == w.response


@pytest.mark.parametrize("start", [1, 3, 4])
def test_events_without_their_opening_are_refused(start: int) -> None:
    events = written_events(TextDelta("a"))
    with pytest.raises(ProtocolError):
        fold(events[start:3] if start == 1 else [events[0], *events[start:]])


def test_the_minted_ids_are_told_in_the_order_of_minting() -> None:
    assert ids_in_order(written_events(TextDelta("a"), Call("f"), ReasoningDelta("r"))) == ["msg_0", "fc_1", "call_2", "rs_3"]
