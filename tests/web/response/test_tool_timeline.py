"""Rounds and tools below the timeline, and blocks of MCP items on the response page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson
from django.test import TestCase

from responses_app.models import Response
from responses_app.protocol.encoding import EventFrame
from responses_app.store.log.event_index import event_headers
from responses_app.web.render.item_blocks import ItemBlock, ItemRenderer
from responses_app.web.response.timelines.timeline import timeline
from responses_app.web.response.timelines.tool_timeline import ToolTimeline, tool_timeline
from tests.support.store.stored_logs import stored_response

LISTING = {"id": "mcpl_1", "type": "mcp_list_tools", "server_label": "demo"}
TEXT = "response.output_text.delta"
ARGUMENTS = "response.mcp_call_arguments.delta"
DONE = "response.output_item.done"


def call(uid: str, name: str) -> dict[str, Any]:
    return {"id": uid, "type": "mcp_call", "server_label": "demo", "name": name}


# Types, milliseconds and fields of the events of a run with a listing, two parallel calls and an answer.
EVENTS: list[tuple[str, int, dict[str, Any]]] = [
    ("response.created", 0, {}),
    ("response.in_progress", 0, {}),
    ("response.output_item.added", 10, {"item": LISTING}),
    ("response.mcp_list_tools.in_progress", 10, {"item_id": "mcpl_1"}),
    ("response.mcp_list_tools.completed", 110, {"item_id": "mcpl_1"}),
    (DONE, 110, {}),
    ("response.output_item.added", 200, {"item": call("mcp_1", "slow")}),
    ("response.mcp_call.in_progress", 200, {"item_id": "mcp_1"}),
    (ARGUMENTS, 220, {"item_id": "mcp_1"}),
    ("response.mcp_call_arguments.done", 240, {"item_id": "mcp_1"}),
    ("response.output_item.added", 250, {"item": call("mcp_2", "fast")}),
    ("response.mcp_call.in_progress", 250, {"item_id": "mcp_2"}),
    (ARGUMENTS, 280, {"item_id": "mcp_2"}),
    ("response.mcp_call_arguments.done", 300, {"item_id": "mcp_2"}),
    ("response.mcp_call.completed", 400, {"item_id": "mcp_2"}),
    (DONE, 400, {}),
    ("response.mcp_call.failed", 740, {"item_id": "mcp_1"}),
    (DONE, 740, {}),
    (TEXT, 840, {}),
    (TEXT, 900, {}),
    ("response.completed", 1000, {}),
]


# The first call ends while the model writes the second one.
OVERLAPPING: list[tuple[str, int, dict[str, Any]]] = [
    ("response.in_progress", 0, {}),
    ("response.output_item.added", 10, {"item": call("mcp_1", "quick")}),
    (ARGUMENTS, 20, {"item_id": "mcp_1"}),
    ("response.mcp_call_arguments.done", 30, {"item_id": "mcp_1"}),
    ("response.output_item.added", 40, {"item": call("mcp_2", "late")}),
    (ARGUMENTS, 50, {"item_id": "mcp_2"}),
    ("response.mcp_call.completed", 60, {"item_id": "mcp_1"}),
    (DONE, 60, {}),
    (ARGUMENTS, 70, {"item_id": "mcp_2"}),
    ("response.mcp_call_arguments.done", 80, {"item_id": "mcp_2"}),
    ("response.mcp_call.completed", 90, {"item_id": "mcp_2"}),
    (DONE, 90, {}),
    (TEXT, 100, {}),
    ("response.completed", 110, {}),
]


def stored(count: int = len(EVENTS), events: Sequence[tuple[str, int, dict[str, Any]]] = EVENTS) -> Response:
    frames = [
        EventFrame(number, kind, orjson.dumps({"type": kind, **fields}), ms)
        for number, (kind, ms, fields) in enumerate(events[:count])
    ]
    return stored_response(frames)


def drawn(row: Response) -> ToolTimeline:
    drawn_timeline = tool_timeline(row.pk, event_headers(row.pk))
    assert drawn_timeline is not None
    return drawn_timeline


class ToolTimelineTest(TestCase):
    """Spans of a stored log."""

    def test_rows_have_rounds_and_parallel_tools(self) -> None:
        drawn_timeline = drawn(stored())
        spans = [(span.label, span.start, span.end, span.row) for span in drawn_timeline.spans]
        self.assertEqual(
            spans,
            [
                ("demo · tools", 10, 110, 1),
                ("Round 1: generation", 110, 280, 0),
                ("slow · demo", 240, 740, 1),
                ("fast · demo", 300, 400, 2),
                ("Round 2: generation", 740, 900, 0),
            ],
        )
        self.assertEqual(drawn_timeline.durations, {"mcpl_1": 100, "mcp_1": 500, "mcp_2": 100})
        self.assertEqual(drawn_timeline.height, 30)

    def test_a_running_tool_lasts_until_the_last_event(self) -> None:
        self.assertEqual(drawn(stored(15)).durations["mcp_1"], 160)

    def test_result_inside_of_a_round_begins_no_round(self) -> None:
        rounds = [(span.start, span.end) for span in drawn(stored(events=OVERLAPPING)).spans if not span.uid]
        self.assertEqual(rounds, [(0, 70), (90, 100)])

    def test_a_log_without_tools_has_no_rows(self) -> None:
        row = stored(2)
        self.assertIsNone(tool_timeline(row.pk, event_headers(row.pk)))

    def test_the_wait_for_tools_is_a_phase_and_prefill_follows(self) -> None:
        drawn_timeline = timeline(event_headers(stored().pk))
        assert drawn_timeline is not None
        phases = [(phase.name, phase.end) for phase in drawn_timeline.phases]
        self.assertEqual(phases[-3:], [("run", 740), ("prefill", 840), ("text", 1000)])

    def test_spans_stay_inside_the_picture(self) -> None:
        spans = drawn(stored()).spans
        self.assertTrue(all(span.x >= 0 and span.x + span.width <= 1001 for span in spans))


def rendered(*items: dict[str, Any]) -> list[ItemBlock]:
    return ItemRenderer().blocks(items)


class McpBlocksTest(TestCase):
    """Blocks of MCP items."""

    def test_listing_names_the_tools(self) -> None:
        (block,) = rendered({**LISTING, "tools": [{"name": "look", "description": "Look <b>"}, {"name": "add"}]})
        self.assertEqual((block.title, block.parts[0].text), ("demo · 2 tools", "look: Look <b>\nadd"))

    def test_failed_listing_shows_the_error(self) -> None:
        (block,) = rendered({**LISTING, "tools": [], "error": "gone"})
        self.assertEqual([part.text for part in block.parts], ["Error: gone"])

    def test_call_shows_arguments_and_result(self) -> None:
        (block,) = rendered({**call("mcp_1", "look"), "arguments": '{"a":1}', "output": "fine", "error": None})
        self.assertEqual(block.title, "look · demo")
        self.assertEqual([part.text for part in block.parts], ['{\n  "a": 1\n}', "fine"])

    def test_call_shows_the_error_of_the_tool(self) -> None:
        error = {"type": "mcp_tool_execution_error", "content": [{"type": "text", "text": "no such city"}]}
        (block,) = rendered({**call("mcp_1", "look"), "arguments": "{}", "output": None, "error": error})
        self.assertEqual(block.parts[-1].text, "The tool reported an error: no such city")

    def test_result_with_an_image_names_the_image(self) -> None:
        output = '[{"type":"text","text":"a map"},{"type":"image","mimeType":"image/png","data":"AAAA"}]'
        (block,) = rendered({**call("mcp_1", "look"), "arguments": "{}", "output": output, "error": None})
        texts = [part.text for part in block.parts[1:]]
        self.assertEqual(texts, ["a map", "[image, image/png, 4 characters of base64]"])

    def test_decision_stands_beside_the_request(self) -> None:
        request = {"id": "mcpr_1", "type": "mcp_approval_request", "server_label": "demo", "name": "look", "arguments": "{}"}
        answer = {"id": "mcpa_1", "type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": False}
        (block,) = rendered(request, {**answer, "reason": "not now"})
        assert block.pair is not None
        self.assertEqual([part.note for part in block.pair.parts], ["Denied", "Reason: not now"])
