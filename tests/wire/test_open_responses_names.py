"""Names of Open Responses for each event, item and tool of this server; names of OpenAI have a prefix."""

from __future__ import annotations

from typing import Any, Final

import orjson
import pytest
from django.test import RequestFactory

from responses_app.protocol.conformance import validate
from responses_app.protocol.conformance.spec import EVENTS
from responses_app.protocol.deltas import Call, Delta, EndItem, TextDelta
from responses_app.protocol.events import Event
from responses_app.wire import profiles
from tests.support.api.open_responses import ITEMS, opened
from tests.support.protocol.item_families import FAMILIES
from tests.support.protocol.response_strategies import ENDINGS, write_response

PLACE = "item_id output_index content_index"
SUMMARY = "item_id output_index summary_index"
# The keys that the schema of Open Responses asks of each of its events, beside `type` and `sequence_number`.
REQUIRED: Final = {
    **{f"response.{life}": "response" for life in ("created", "queued", "in_progress", "completed", "failed", "incomplete")},
    **dict.fromkeys(("response.output_item.added", "response.output_item.done"), "output_index item"),
    **dict.fromkeys(("response.content_part.added", "response.content_part.done"), f"{PLACE} part"),
    "response.output_text.delta": f"{PLACE} delta",
    "response.output_text.done": f"{PLACE} text",
    "response.output_text.annotation.added": f"{PLACE} annotation_index annotation",
    "response.refusal.delta": f"{PLACE} delta",
    "response.refusal.done": f"{PLACE} refusal",
    "response.reasoning.delta": f"{PLACE} delta",
    "response.reasoning.done": f"{PLACE} text",
    **dict.fromkeys(("response.reasoning_summary_part.added", "response.reasoning_summary_part.done"), f"{SUMMARY} part"),
    "response.reasoning_summary_text.delta": f"{SUMMARY} delta",
    "response.reasoning_summary_text.done": f"{SUMMARY} text",
    "response.function_call_arguments.delta": "item_id output_index delta",
    "response.function_call_arguments.done": "item_id output_index arguments",
    "error": "error",
}
# Events of OpenAI's that no speech of the grammar has.
UNSAID: Final = {
    *(f"response.audio.{part}" for part in ("delta", "done", "transcript.delta", "transcript.done")),
    *(f"response.image_generation_call.{stage}" for stage in ("in_progress", "generating", "partial_image", "completed")),
    *(f"response.shell_call_output_content.{part}" for part in ("delta", "done")),
    "response.compaction.compacting",
    *(f"response.refusal.{part}" for part in ("delta", "done")),
    *(f"response.reasoning_summary_part.{part}" for part in ("added", "done")),
    *(f"response.reasoning_summary_text.{part}" for part in ("delta", "done")),
}
SPEECHES: Final[dict[str, tuple[list[Delta], str, str]]] = {
    **{name: (pieces, "complete", "in_progress") for name, (pieces, _, _) in FAMILIES.items()},
    **{f"text, then {ending}": ([TextDelta("a")], ending, "queued") for ending in ENDINGS},
    "call, then cut": ([Call("f")], "cut", "in_progress"),
    "all": ([piece for pieces, _, _ in FAMILIES.values() for piece in [*pieces, EndItem()]], "complete", "in_progress"),
}
NULLS = {"user": None, "prompt_cache_retention": None, "moderation": None, "access_programs": None}
FUNCTION = {"type": "function", "name": "f", "description": None, "parameters": None, "strict": False, "output_schema": None}
CUSTOM = {"type": "custom", "name": "t", "description": None, "format": {"type": "text"}}
SPACE = {"type": "namespace", "name": "n", "description": "d", "tools": [FUNCTION, CUSTOM]}


def protocol_events(name: str) -> list[Event]:
    """Return the events of a log."""
    pieces, ending, status = SPEECHES[name]
    return write_response(pieces, ending, status=status, **NULLS, tools=[FUNCTION, CUSTOM, SPACE])[0]


def parsed_body(raw: dict[str, Any], path: str = "/openresponses/v1/responses") -> dict[str, Any]:
    """Return the request body after normalization."""
    return profiles.normalize_request(RequestFactory().post(path), raw)


@pytest.mark.parametrize("name", SPEECHES)
def test_every_event_is_one_of_the_union_with_its_keys_or_has_the_prefix(name: str) -> None:
    renamed = opened(protocol_events(name))
    assert validate(renamed, "openresponses") == []
    for event in renamed:
        needed = REQUIRED.get(event["type"])
        assert needed is not None or event["type"].startswith("openai:response."), event
        assert {"type", "sequence_number", *(needed or "").split()} <= set(event), event


@pytest.mark.parametrize("name", SPEECHES)
def test_every_item_is_one_of_the_union_or_has_the_prefix_and_says_no_null(name: str) -> None:
    renamed = opened(protocol_events(name))
    items = [event["item"] for event in renamed if "item" in event] + renamed[-1]["response"]["output"]
    for item in items:
        assert item["type"] in ITEMS or item["type"].startswith("openai:"), item
        assert {"id", "type", "status", *ITEMS.get(item["type"], "").split()} <= set(item), item
        assert None not in item.values(), item


def test_the_union_is_all_that_the_reference_lists() -> None:
    assert set(REQUIRED) == EVENTS["openresponses"]


def test_every_event_that_the_grammar_can_say_is_tried() -> None:
    types = {event["type"] for name in SPEECHES for event in protocol_events(name)}
    assert EVENTS["openai"] - types == UNSAID


def test_delta_and_text_events_change_only_their_type() -> None:
    events = [event for event in protocol_events("all") if "item" not in event and "response" not in event]
    renamed = [event for event in opened(protocol_events("all")) if "item" not in event and "response" not in event]
    assert [{**event, "type": ""} for event in renamed] == [{**event, "type": ""} for event in events]


def test_a_response_leaves_out_what_says_nothing_and_need_not_be_there() -> None:
    response = opened(protocol_events("message"))[-1]["response"]
    assert {"prompt_cache_retention", "moderation", "access_programs"} & set(response) == set()
    assert (response["user"], response["instructions"], response["max_tool_calls"]) == (None, None, None)
    assert response["reasoning"] == {"effort": None, "summary": None}


def test_tools_and_choices_are_echoed_with_the_prefix() -> None:
    function = {"type": "function", "name": "f", "description": None, "parameters": None, "strict": False}
    custom = {"type": "openai:custom", "name": "t", "format": {"type": "text"}}
    choice = {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "custom", "name": "t"}, {"type": "shell"}]}
    renamed = opened(write_response([TextDelta("a")], tools=[FUNCTION, CUSTOM, SPACE], tool_choice=choice)[0])[-1]["response"]
    assert renamed["tools"][:2] == [function, custom]
    assert [one["type"] for one in renamed["tools"][2]["tools"]] == ["function", "openai:custom"]
    assert [one["type"] for one in renamed["tool_choice"]["tools"]] == ["openai:custom", "openai:shell"]


def test_renamed_items_are_valid_input() -> None:
    items = write_response(SPEECHES["all"][0])[0][-1]["response"]["output"]
    renamed = [
        orjson.loads(profiles.item_to_profile(RequestFactory().get("/openresponses/v1/x"), orjson.dumps(item)))
        for item in items
    ]
    back = parsed_body({"input": renamed})["input"]
    assert back == [{key: value for key, value in item.items() if value is not None} for item in items]
    tools = [{"type": "openai:namespace", "tools": [{"type": "openai:custom"}, {"type": "function"}]}, {"type": "web_search"}]
    read = parsed_body({"tools": tools, "tool_choice": {"type": "openai:custom", "name": "t"}, "input": "Hi"})
    assert read["tools"] == [{"type": "namespace", "tools": [{"type": "custom"}, {"type": "function"}]}, {"type": "web_search"}]
    assert (read["tool_choice"], read["input"]) == ({"type": "custom", "name": "t"}, "Hi")


def test_malformed_lists_are_left_to_validation() -> None:
    odd: dict[str, Any] = {
        "input": [None, 5, {"type": 5, "tools": 7}, {"type": ["x"]}, {"type": {}}],
        "tools": {"a": 1},
        "tool_choice": "auto",
        "items": "x",
    }
    assert parsed_body(odd) == odd


def test_the_prefix_means_nothing_below_v1() -> None:
    assert parsed_body({"tools": [{"type": "openai:custom"}]}, "/v1/responses") == {"tools": [{"type": "openai:custom"}]}
