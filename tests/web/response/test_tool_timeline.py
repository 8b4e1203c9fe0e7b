"""Rounds and tools in the timeline, and blocks of MCP items on the response page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import orjson
from django.test import TestCase

from responses_app.models import Response
from responses_app.protocol.encoding import EventFrame
from responses_app.store.log.event_index import event_headers
from responses_app.web.render.item_blocks import ItemBlock, ItemRenderer
from responses_app.web.response.timelines.item_spans import ItemSpan, item_spans, round_starts, tool_durations
from responses_app.web.response.timelines.timeline import MAX_SEGMENTS, Timeline, timeline
from tests.support.store.stored_logs import stored_response

LISTING = {"id": "mcpl_1", "type": "mcp_list_tools", "server_label": "demo"}
TEXT = "response.output_text.delta"
ARGUMENTS = "response.mcp_call_arguments.delta"
DONE = "response.output_item.done"


def call(uid: str, name: str) -> dict[str, Any]:
    return {"id": uid, "type": "mcp_call", "server_label": "demo", "name": name}


Logged: TypeAlias = tuple[str, int, dict[str, Any]]
# Types, milliseconds and fields of the events of a run with a listing, two parallel calls and an answer.
EVENTS: list[Logged] = [
    ("response.created", 0, {}),
    ("response.in_progress", 0, {}),
    ("response.output_item.added", 10, {"item": LISTING}),
    ("response.mcp_list_tools.in_progress", 10, {"item_id": "mcpl_1"}),
    ("response.mcp_list_tools.completed", 110, {"item_id": "mcpl_1"}),
    (DONE, 110, {"item": LISTING}),
    ("response.output_item.added", 200, {"item": call("mcp_1", "slow")}),
    ("response.mcp_call.in_progress", 200, {"item_id": "mcp_1"}),
    (ARGUMENTS, 220, {"item_id": "mcp_1"}),
    ("response.mcp_call_arguments.done", 240, {"item_id": "mcp_1"}),
    ("response.output_item.added", 250, {"item": call("mcp_2", "fast")}),
    ("response.mcp_call.in_progress", 250, {"item_id": "mcp_2"}),
    (ARGUMENTS, 280, {"item_id": "mcp_2"}),
    ("response.mcp_call_arguments.done", 300, {"item_id": "mcp_2"}),
    ("response.mcp_call.completed", 400, {"item_id": "mcp_2"}),
    (DONE, 400, {"item": call("mcp_2", "fast")}),
    ("response.mcp_call.failed", 740, {"item_id": "mcp_1"}),
    (DONE, 740, {"item": call("mcp_1", "slow")}),
    ("response.output_item.added", 840, {"item": {"id": "msg_1", "type": "message"}}),
    (TEXT, 840, {}),
    (TEXT, 900, {}),
    ("response.completed", 1000, {}),
]


# The first call ends while the model writes the second one.
OVERLAPPING: list[Logged] = [
    ("response.in_progress", 0, {}),
    ("response.output_item.added", 10, {"item": call("mcp_1", "quick")}),
    (ARGUMENTS, 20, {"item_id": "mcp_1"}),
    ("response.mcp_call_arguments.done", 30, {"item_id": "mcp_1"}),
    ("response.output_item.added", 40, {"item": call("mcp_2", "late")}),
    (ARGUMENTS, 50, {"item_id": "mcp_2"}),
    ("response.mcp_call.completed", 60, {"item_id": "mcp_1"}),
    (DONE, 60, {"item": call("mcp_1", "quick")}),
    (ARGUMENTS, 70, {"item_id": "mcp_2"}),
    ("response.mcp_call_arguments.done", 80, {"item_id": "mcp_2"}),
    ("response.mcp_call.completed", 90, {"item_id": "mcp_2"}),
    (DONE, 90, {"item": call("mcp_2", "late")}),
    (TEXT, 100, {}),
    ("response.completed", 110, {}),
]


def stored(count: int = len(EVENTS), events: Sequence[Logged] = EVENTS) -> Response:
    return stored_response(frames_of(events[:count]))


def frames_of(events: Sequence[Logged]) -> list[EventFrame]:
    return [
        EventFrame(number, kind, orjson.dumps({"type": kind, **fields}), ms) for number, (kind, ms, fields) in enumerate(events)
    ]


def spans_of(row: Response) -> list[ItemSpan]:
    return item_spans(row.pk, event_headers(row.pk))


def drawn(row: Response) -> Timeline:
    drawn_timeline = timeline(event_headers(row.pk), spans_of(row))
    assert drawn_timeline is not None
    return drawn_timeline


def segments(row: Response) -> list[list[tuple[str, int, int, int, str]]]:
    """Return label, start, end, lane and item of each segment, by round."""
    return [[(one.label, one.start, one.end, one.lane, one.uid) for one in line.segments] for line in drawn(row).rows]


class RoundsTest(TestCase):
    """Rows of a stored log."""

    def test_time_before_a_call_without_deltas_is_that_of_writing_it(self) -> None:
        search = {"id": "ws_1", "type": "web_search_call"}
        row = stored(
            events=[
                ("response.in_progress", 0, {}),
                ("response.output_item.added", 10, {"item": {"id": "rs_1", "type": "reasoning"}}),
                ("response.reasoning_text.delta", 20, {"item_id": "rs_1"}),
                ("response.output_item.added", 1500, {"item": search}),
                ("response.web_search_call.in_progress", 1500, {"item_id": "ws_1"}),
                ("response.web_search_call.completed", 1600, {"item_id": "ws_1"}),
                (DONE, 1600, {"item": search}),
            ]
        )
        self.assertIn(("Call: Web search", 20, 1500, 0, "ws_1"), segments(row)[0])

    def test_reasoning_ends_with_its_item(self) -> None:
        reasoning = {"id": "rs_1", "type": "reasoning"}
        row = stored(
            events=[
                ("response.in_progress", 0, {}),
                ("response.output_item.added", 10, {"item": reasoning}),
                ("response.reasoning_text.delta", 20, {"item_id": "rs_1"}),
                ("response.reasoning_text.delta", 150, {"item_id": "rs_1"}),
                (DONE, 200, {"item": reasoning}),
                ("response.output_item.added", 310, {"item": call("mcp_1", "slow")}),
                (ARGUMENTS, 350, {"item_id": "mcp_1"}),
                ("response.completed", 360, {}),
            ]
        )
        self.assertEqual(segments(row)[0][1:], [("Reasoning", 20, 200, 0, "rs_1"), ("Call: slow · demo", 200, 360, 0, "mcp_1")])

    def test_row_of_a_round_has_its_listing_generation_and_parallel_tools(self) -> None:
        row = stored()
        self.assertEqual(
            segments(row),
            [
                [
                    ("Prefill", 0, 10, 0, ""),
                    ("demo · tools", 10, 110, 0, "mcpl_1"),
                    ("Prefill", 110, 200, 0, ""),
                    ("Call: slow · demo", 200, 240, 0, "mcp_1"),
                    ("Call: fast · demo", 240, 300, 0, "mcp_2"),
                    ("slow · demo", 240, 740, 1, "mcp_1"),
                    ("fast · demo", 300, 400, 0, "mcp_2"),
                ],
                [("Prefill", 740, 840, 0, ""), ("Text", 840, 1000, 0, "msg_1")],
            ],
        )
        self.assertEqual([line.height for line in drawn(row).rows], [36, 18])

    def test_items_have_their_events_and_the_time_of_their_tools(self) -> None:
        spans = spans_of(stored())
        self.assertEqual(
            [(span.uid, span.first, span.last, span.run) for span in spans],
            [("mcpl_1", 2, 5, (10, 110)), ("mcp_1", 6, 17, (240, 740)), ("mcp_2", 10, 15, (300, 400)), ("msg_1", 18, 21, None)],
        )
        self.assertEqual(tool_durations(spans), {"mcpl_1": 100, "mcp_1": 500, "mcp_2": 100})

    def test_a_running_tool_lasts_until_the_last_event(self) -> None:
        self.assertEqual(tool_durations(spans_of(stored(15)))["mcp_1"], 160)

    def test_result_inside_of_a_round_begins_no_round(self) -> None:
        self.assertEqual(round_starts(event_headers(stored(events=OVERLAPPING).pk)), [0, 90])

    def test_a_log_without_tools_has_a_single_row(self) -> None:
        events: list[Logged] = [
            ("response.in_progress", 0, {}),
            (TEXT, 100, {}),
            (TEXT, 110, {}),
            ("response.completed", 120, {}),
        ]
        self.assertEqual(segments(stored(4, events)), [[("Prefill", 0, 100, 0, ""), ("Text", 100, 120, 0, "")]])

    def test_item_without_duration_has_a_segment(self) -> None:
        message = {"item": {"id": "msg_1", "type": "message"}}
        events: list[Logged] = [
            ("response.in_progress", 0, {}),
            ("response.output_item.added", 90, message),
            (TEXT, 90, {}),
            (DONE, 90, message),
            ("response.completed", 90, {}),
        ]
        self.assertEqual(segments(stored(5, events)), [[("Prefill", 0, 90, 0, ""), ("Text", 90, 90, 0, "msg_1")]])

    def test_the_wait_for_tools_is_in_the_sums_once(self) -> None:
        sums = [(name, ms) for name, _, ms in drawn(stored()).sums]
        self.assertEqual(sums, [("prefill", 200), ("run", 540), ("tool", 100), ("text", 160)])

    def test_segments_stay_inside_the_picture_and_the_longest_are_drawn(self) -> None:
        drawn_segments = [one for line in drawn(stored()).rows for one in line.segments]
        self.assertTrue(all(one.x >= 0 and one.x + one.width <= 100.01 for one in drawn_segments))
        kinds = ("response.reasoning_text.delta", TEXT)
        events: list[Logged] = [
            ("response.in_progress", 0, {}),
            *((kinds[n % 2], n * 10 + 10, {}) for n in range(400)),
            (TEXT, 9000, {}),
        ]
        (line,) = drawn(stored_response(frames_of(events), "resp_2")).rows
        self.assertEqual((len(line.segments), line.segments[-1].end), (MAX_SEGMENTS, 9000))


def rendered(*items: dict[str, Any]) -> list[ItemBlock]:
    return ItemRenderer().blocks(items)


class McpBlocksTest(TestCase):
    """Blocks of MCP items."""

    def test_listing_names_the_tools(self) -> None:
        (block,) = rendered({**LISTING, "tools": [{"name": "look", "description": "Look <b>"}, {"name": "add"}]})
        self.assertEqual((block.title, block.parts[0].text), ("demo · 2 tools", "look: Look <b>\nadd"))

    def test_failed_listing_shows_the_error(self) -> None:
        (block,) = rendered({**LISTING, "tools": [], "error": "gone"})
        self.assertEqual([(part.text, part.is_error) for part in block.parts], [("gone", True)])

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
