"""Timeline of a response as SVG: a row per round with its phases and tools, and the rate of deltas over time."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final, TypeAlias

from responses_app.store.log.event_index import EventHeader
from responses_app.web.render.item_titles import duration_text, item_title
from responses_app.web.response.timelines.event_kinds import DELTA, GENERATION_KINDS, event_kind
from responses_app.web.response.timelines.item_spans import SERVER_EVENTS, TOOL_ENDS, ItemSpan, round_starts
from responses_app.web.response.timelines.rate import RateBar, bars

# Units of the rate's picture. Segments are in percent.
WIDTH: Final = 1000.0
MIN_PERCENT: Final = 0.4
# Percent that a character of a label takes, at least, on a wide screen.
PERCENT_PER_CHAR: Final = 0.8
LANE_HEIGHT: Final = 18
# The longest segments are drawn.
MAX_SEGMENTS: Final = 150
# A gap is a stall if longer than MIN_STALL_MS and than STALL_FACTOR times the median gap between deltas.
MIN_STALL_MS: Final = 400
STALL_FACTOR: Final = 8
# Events of a tool that its run, not the model, makes: a silence before these is time of the tool, as the wait for a container.
TOOL_STEPS: Final = frozenset(name for name in SERVER_EVENTS if name.endswith((".interpreting", ".searching")))
# Phases in which the model writes items of these types, empty for an item that the model does not write. Others are calls.
ITEM_PHASES: Final = {"message": "text", "reasoning": "reasoning", "mcp_list_tools": ""}
# Phases and their labels. The names are CSS classes.
LABELS: Final = {
    "queue": "Queued",
    "prefill": "Prefill",
    "reasoning": "Reasoning",
    "text": "Text",
    "tool": "Tool calls",
    "run": "Tools running",
    "silence": "Stalled",
    "handover": "Taken over",
}
# Name, start and end in milliseconds, and the item that the model writes. A plain tuple, because a long log has tens of thousands.
Span: TypeAlias = tuple[str, int, int, str]


@dataclass(frozen=True, slots=True)
class Segment:
    """Part of a row from `start` to `end`, in milliseconds of a log of `total`. `uid` is the id of its item, if it has one."""

    name: str
    label: str
    start: int
    end: int
    total: int
    uid: str = ""
    lane: int = 0

    @property
    def took(self) -> str:
        """Return the duration in words."""
        return duration_text((self.end - self.start) / 1000)

    @property
    def x(self) -> float:
        """Return the left edge in percent."""
        return round(min(self.start / self.total * 100, 100 - MIN_PERCENT), 2)

    @property
    def width(self) -> float:
        """Return the width in percent."""
        return round(max((self.end - self.start) / self.total * 100, MIN_PERCENT), 2)

    @property
    def y(self) -> int:
        """Return the top edge."""
        return self.lane * LANE_HEIGHT

    @property
    def text(self) -> str:
        """Return the label if it fits into the segment."""
        return self.label if len(self.label) * PERCENT_PER_CHAR < self.width else ""


@dataclass(frozen=True, slots=True)
class TimelineRow:
    """Segments of a round; those that overlap are in lanes of their own."""

    number: int
    segments: Sequence[Segment]

    @property
    def height(self) -> int:
        """Return the height of all lanes."""
        return (max((segment.lane for segment in self.segments), default=0) + 1) * LANE_HEIGHT


@dataclass(frozen=True, slots=True)
class Timeline:
    """Rows in order, durations by phase, bars of the rate, and the total time in milliseconds."""

    rows: Sequence[TimelineRow]
    sums: Sequence[tuple[str, str, int]]
    bars: Sequence[RateBar]
    total: int

    @property
    def fastest(self) -> float:
        """Return the highest rate in deltas per second."""
        return max((bar.rate for bar in self.bars), default=0.0)

    @property
    def has_items(self) -> bool:
        """Return True if a segment belongs to an item."""
        return any(segment.uid for row in self.rows for segment in row.segments)


def timeline(
    headers: Sequence[EventHeader], spans: Sequence[ItemSpan] = (), takeovers: Sequence[int] | None = None
) -> Timeline | None:
    """Build the timeline of a log with the items `spans`, None for a log without duration.

    `takeovers` are the numbers of the last events before another process continued the response.
    """
    if len(headers) < 2 or headers[-1].ms <= 0:
        return None
    total = headers[-1].ms
    phases = [
        phase for phase in _merge(_phases(headers, spans, {number + 1 for number in takeovers or ()})) if phase[2] > phase[1]
    ]
    segments = [*_written(phases, spans, total), *_run(spans, total)]
    segments += _short(spans, {segment.uid for segment in segments}, headers)
    shown = sorted(segments, key=lambda segment: segment.start - segment.end)[:MAX_SEGMENTS]
    return Timeline(
        _rows(shown, round_starts(headers)), _sums(phases), bars(_deltas(headers), total, WIDTH, _pause(headers)), total
    )


def _written(phases: Sequence[Span], spans: Sequence[ItemSpan], total: int) -> Iterator[Segment]:
    """Yield the phases as segments. Runs of tools that have an item are drawn by `_run`."""
    titles = {span.uid: item_title(span.item) for span in spans}
    has_runs = any(span.run for span in spans)
    for name, start, end, uid in phases:
        if name != "run" or not has_runs:
            yield Segment(name, f"Call: {titles[uid]}" if name == "tool" and uid else LABELS[name], start, end, total, uid)


def _run(spans: Sequence[ItemSpan], total: int) -> Iterator[Segment]:
    for span in spans:
        if span.run:
            yield Segment("run", item_title(span.item), *span.run, total, span.uid)


def _short(spans: Sequence[ItemSpan], drawn: set[str], headers: Sequence[EventHeader]) -> Iterator[Segment]:
    """Yield a segment without duration for each item that has no other."""
    times = {header.number: header.ms for header in headers}
    for span in spans:
        if span.uid not in drawn:
            name = _item_phase(span) or "tool"
            label = item_title(span.item) if name == "tool" else LABELS[name]
            yield Segment(name, label, times[span.last], times[span.last], headers[-1].ms, span.uid)


def _rows(segments: Sequence[Segment], starts: Sequence[int]) -> list[TimelineRow]:
    """Place the segments: each in the round in which it ends, in the first lane that is free, what the model writes first."""
    rows: list[list[Segment]] = [[] for _ in starts]
    for segment in sorted(segments, key=lambda one: (one.name == "run", one.start, one.end)):
        row = rows[max(bisect_left(starts, segment.end), 1) - 1]
        taken = {other.lane for other in row if other.start < segment.end and segment.start < other.end}
        lane = next(number for number in range(len(row) + 1) if number not in taken)
        row.append(replace(segment, lane=lane))
    return [TimelineRow(number, sorted(row, key=lambda one: (one.start, one.lane))) for number, row in enumerate(rows, start=1)]


def _sums(phases: Sequence[Span]) -> list[tuple[str, str, int]]:
    """Return name, label and total milliseconds of each kind of phase, by first occurrence."""
    totals: dict[str, int] = {}
    for name, start, end, _ in phases:
        totals[name] = totals.get(name, 0) + end - start
    return [(name, LABELS[name], ms) for name, ms in totals.items()]


def _deltas(headers: Sequence[EventHeader]) -> Iterator[tuple[str, int]]:
    """Return the phase and the time of each delta."""
    kinds = ((event_kind(header.type), header) for header in headers if header.type.endswith(DELTA))
    return ((_phase(name), header.ms) for name, header in kinds if name in GENERATION_KINDS)


def _item_phase(span: ItemSpan) -> str:
    return ITEM_PHASES.get(str(span.item.get("type")), "tool")


def _phase(kind: str) -> str:
    return "tool" if kind == "tools" else kind


def _pause(headers: Sequence[EventHeader]) -> int:
    """Return the longest gap in milliseconds that is not a stall."""
    return max(MIN_STALL_MS, STALL_FACTOR * _median_gap(headers))


def _phases(headers: Sequence[EventHeader], spans: Sequence[ItemSpan], continued: Set[int] = frozenset()) -> Iterator[Span]:
    """Yield the phase before each event, named by the kind of the event. Before any output the phase is queue or prefill.

    `continued` are the numbers of the first events of other processes.
    """
    started_ms = next((header.ms for header in headers if header.type == "response.in_progress"), 0)
    queued = any(header.type == "response.queued" for header in headers[:3])
    yield "queue", 0, started_ms if queued else 0, ""
    firsts = [span.first for span in spans]
    phases_of_items = {span.first: _item_phase(span) for span in spans}
    pause, before, has_output = _pause(headers), started_ms if queued else 0, False
    for header in headers:
        kind = event_kind(header.type)
        if header.ms > before:
            name = _phase_before(header, kind, has_output=has_output, is_long=header.ms - before > pause)
            # What the model wrote before an item begins belongs to that item: the marks around it, or a whole call.
            item_phase = phases_of_items.get(header.number, "")
            name = "handover" if header.number in continued else name
            is_item = bool(item_phase) and (not name or (name == "silence" and item_phase == "tool"))
            name = item_phase if is_item else name
            place = bisect_right(firsts, header.number) if name in LABELS and (is_item or name == _phase(kind)) else 0
            yield name, before, header.ms, spans[place - 1].uid if place else ""
            before = header.ms
        # Count also an event in the same millisecond as the previous event.
        # The result of a tool begins a new prompt.
        has_output = header.type not in TOOL_ENDS and (has_output or kind in GENERATION_KINDS)


def _phase_before(header: EventHeader, kind: str, *, has_output: bool, is_long: bool) -> str:
    """Name the phase before an event, empty for one that extends the phase before."""
    if header.type in TOOL_ENDS or (header.type in TOOL_STEPS and has_output):
        return "run"
    if not has_output:
        return "prefill"
    if is_long:
        return "silence"
    return _phase(kind) if kind in GENERATION_KINDS else ""


def _median_gap(headers: Sequence[EventHeader]) -> int:
    """Return the median milliseconds between two deltas."""
    times = [header.ms for header in headers if header.type.endswith(DELTA)]
    gaps = sorted(later - earlier for earlier, later in pairwise(times))
    return gaps[len(gaps) // 2] if gaps else 0


def _merge(phases: Iterator[Span]) -> Iterator[Span]:
    """Merge adjacent phases of the same name and item. A phase without a name extends the previous phase."""
    current, since, until, uid = next(phases)
    for name, start, end, item in phases:
        if name and (name, item) != (current, uid):
            yield current, since, until, uid
            current, since, uid = name, start, item
        until = end
    yield current, since, until, uid
