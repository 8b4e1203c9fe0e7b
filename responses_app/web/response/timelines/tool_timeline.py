"""Rows below the timeline: the rounds of generation, and each tool that the server ran, parallel ones in rows of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import orjson

from responses_app.protocol.items.registry import FAMILIES
from responses_app.store.log.event_index import EventHeader, events_by_number
from responses_app.web.render.item_titles import item_title
from responses_app.web.response.timelines.event_kinds import event_kind
from responses_app.web.response.timelines.timeline import GENERATION_KINDS, TOOL_ENDS, WIDTH

ADDED: Final = "response.output_item.added"
DONE: Final = "response.output_item.done"
MIN_WIDTH: Final = 1.0
ROW_HEIGHT: Final = 10
MAX_SPANS: Final = 200
# The last event before a tool runs: the end of the arguments, or the begin of a tool without arguments.
STARTS: Final = (".in_progress", "_arguments.done", "_code.done")
TOOL_EVENTS: Final = TOOL_ENDS | {
    name for family in FAMILIES.values() if family.runs_on_server for name in family.event_types() if name.endswith(STARTS)
}


@dataclass(frozen=True, slots=True)
class ToolSpan:
    """Duration of a tool or of a round, in milliseconds, in the row `row`. `name` is a CSS class."""

    name: str
    label: str
    start: int
    end: int
    total: int
    row: int = 0
    uid: str = ""

    @property
    def took(self) -> int:
        """Return the duration in milliseconds."""
        return self.end - self.start

    @property
    def x(self) -> float:
        """Return the left edge."""
        return round(min(self.start / self.total * WIDTH, WIDTH - MIN_WIDTH), 2)

    @property
    def width(self) -> float:
        """Return the width."""
        return round(max(self.took / self.total * WIDTH, MIN_WIDTH), 2)

    @property
    def y(self) -> int:
        """Return the top edge."""
        return self.row * ROW_HEIGHT


@dataclass(frozen=True, slots=True)
class ToolTimeline:
    """Spans by start."""

    spans: Sequence[ToolSpan]

    @property
    def height(self) -> int:
        """Return the height of all rows."""
        return (max(span.row for span in self.spans) + 1) * ROW_HEIGHT

    @property
    def durations(self) -> Mapping[str, int]:
        """Return the milliseconds of each tool by item id."""
        return {span.uid: span.took for span in self.spans if span.uid}


def tool_timeline(pk: int, headers: Sequence[EventHeader]) -> ToolTimeline | None:
    """Build the rows of a log, None for a log without tools of the server."""
    if not any(header.type in TOOL_EVENTS for header in headers) or headers[-1].ms <= 0:
        return None
    total = headers[-1].ms
    tools = _placed(_tool_spans(pk, headers, total))
    rounds = [
        ToolSpan("text", f"Round {number}: generation", start, end, total)
        for number, (start, end) in enumerate(_rounds(headers), start=1)
    ]
    return ToolTimeline(sorted([*rounds, *tools], key=lambda span: (span.start, span.row))[:MAX_SPANS])


def _tool_spans(pk: int, headers: Sequence[EventHeader], total: int) -> Iterator[ToolSpan]:
    """Yield a span for each item, from the last start to the end. A tool without an end is running."""
    times = {header.number: header.ms for header in headers}
    numbers = [header.number for header in headers if header.type == ADDED or header.type in TOOL_EVENTS]
    items, starts, ends = dict[str, Any](), dict[str, int](), dict[str, int]()
    for number, frame in sorted(events_by_number(pk, numbers).items()):
        event = orjson.loads(frame.data)
        if frame.type == ADDED:
            items[event["item"]["id"]] = event["item"]
        else:
            (ends if frame.type in TOOL_ENDS else starts)[event["item_id"]] = times[number]
    for uid, start in starts.items():
        item = items.get(uid, {})
        yield ToolSpan("run", _label(item), start, max(ends.get(uid, total), start), total, uid=uid)


def _label(item: Mapping[str, Any]) -> str:
    return item_title(item) if item else "Tool"


def _placed(spans: Iterator[ToolSpan]) -> list[ToolSpan]:
    """Give each span the first row below the rounds that is free at the start."""
    placed, free_from = list[ToolSpan](), list[int]()
    for span in sorted(spans, key=lambda span: (span.start, span.end)):
        row = next((number for number, end in enumerate(free_from) if end <= span.start), len(free_from))
        free_from[row : row + 1] = [max(span.end, span.start + 1)]
        placed.append(ToolSpan(span.name, span.label, span.start, span.end, span.total, row + 1, span.uid))
    return placed


def _rounds(headers: Sequence[EventHeader]) -> Iterator[tuple[int, int]]:
    """Yield start and end of each round: the times in which the model generated."""
    start = next((header.ms for header in headers if header.type == "response.in_progress"), 0)
    last, ends = None, list(_last_results(headers))
    generated = [
        header.ms for header in headers if header.type.endswith(".delta") and event_kind(header.type) in GENERATION_KINDS
    ]
    for ms in generated:
        later = [end for end in ends if (last or 0) <= end <= ms]
        if later:
            if last is not None:
                yield start, last
            start, ends = later[-1], [end for end in ends if end > ms]
        last = ms
    if last is not None:
        yield start, last


def _last_results(headers: Sequence[EventHeader]) -> Iterator[int]:
    """Yield the times of the results that close the last open item. A result while another item is open is inside of a round."""
    count = 0
    for before, header in pairwise(headers):
        count += (header.type == ADDED) - (header.type == DONE)
        if not count and header.type == DONE and before.type in TOOL_ENDS:
            yield header.ms
