"""Timeline of a response as SVG: phases, stalls and the rate of deltas over time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, TypeAlias

from responses_app.protocol.items.registry import FAMILIES
from responses_app.store.log.event_index import EventHeader
from responses_app.web.response.timelines.event_kinds import DELTA, event_kind
from responses_app.web.response.timelines.rate import RateBar, bars

WIDTH: Final = 1000.0
# A gap is a stall if longer than MIN_STALL_MS and than STALL_FACTOR times the median gap between deltas.
MIN_STALL_MS: Final = 400
STALL_FACTOR: Final = 8
GENERATION_KINDS: Final = frozenset({"reasoning", "text", "tools"})
# The events that end a tool that the server ran.
TOOL_ENDS: Final = frozenset(
    name
    for family in FAMILIES.values()
    if family.runs_on_server
    for name in family.event_types()
    if name.endswith((".completed", ".failed"))
)
# Events of such a tool that its run, not the model, makes: a silence before these is time of the tool, as the wait for a container.
TOOL_STEPS: Final = frozenset(
    name
    for family in FAMILIES.values()
    if family.runs_on_server
    for name in family.event_types()
    if name.endswith((".interpreting", ".searching"))
)
# Phases and their labels. The names are CSS classes.
LABELS: Final = {
    "queue": "Queued",
    "prefill": "Prefill",
    "reasoning": "Reasoning",
    "text": "Text",
    "tool": "Tool calls",
    "run": "Tools running",
    "silence": "Stalled",
}
# Name, start and end in milliseconds. A plain tuple, because a long log has tens of thousands.
Span: TypeAlias = tuple[str, int, int]


@dataclass(frozen=True, slots=True)
class Phase:
    """Phase from `start` to `end`, in milliseconds, with SVG coordinates."""

    name: str
    start: int
    end: int
    x: float = 0
    width: float = 0

    @property
    def took(self) -> int:
        """Return the duration in milliseconds."""
        return self.end - self.start

    @property
    def label(self) -> str:
        """Return the label of the phase."""
        return LABELS[self.name]


@dataclass(frozen=True, slots=True)
class Timeline:
    """Phases in order, bars of the rate, and the total time in milliseconds."""

    phases: Sequence[Phase]
    bars: Sequence[RateBar]
    total: int

    @property
    def fastest(self) -> float:
        """Return the highest rate in deltas per second."""
        return max((bar.rate for bar in self.bars), default=0.0)

    @property
    def sums(self) -> list[tuple[str, str, int]]:
        """Return name, label and total milliseconds of each kind of phase, by first occurrence."""
        totals: dict[str, int] = {}
        for phase in self.phases:
            totals[phase.name] = totals.get(phase.name, 0) + phase.took
        return [(name, LABELS[name], ms) for name, ms in totals.items()]


def timeline(headers: Sequence[EventHeader]) -> Timeline | None:
    """Build the timeline of a log, None for a log without duration."""
    if len(headers) < 2 or headers[-1].ms <= 0:
        return None
    total = headers[-1].ms
    placed = [
        Phase(name, start, end, round(start / total * WIDTH, 2), round(max((end - start) / total * WIDTH, 0.6), 2))
        for name, start, end in _merge(_phases(headers))
        if end > start
    ]
    return Timeline(placed, bars(_deltas(headers), total, WIDTH, _pause(headers)), total)


def _deltas(headers: Sequence[EventHeader]) -> Iterator[tuple[str, int]]:
    """Return the phase and the time of each delta."""
    kinds = ((event_kind(header.type), header) for header in headers if header.type.endswith(DELTA))
    return ((_phase(name), header.ms) for name, header in kinds if name in GENERATION_KINDS)


def _phase(kind: str) -> str:
    return "tool" if kind == "tools" else kind


def _pause(headers: Sequence[EventHeader]) -> int:
    """Return the longest gap in milliseconds that is not a stall."""
    return max(MIN_STALL_MS, STALL_FACTOR * _median_gap(headers))


def _phases(headers: Sequence[EventHeader]) -> Iterator[Span]:
    """Yield the phase before each event, named by the kind of the event. Before any output the phase is queue or prefill."""
    started_ms = next((header.ms for header in headers if header.type == "response.in_progress"), 0)
    queued = any(header.type == "response.queued" for header in headers[:3])
    yield "queue", 0, started_ms if queued else 0
    pause, before, has_output = _pause(headers), started_ms if queued else 0, False
    for header in headers:
        kind = event_kind(header.type)
        if header.ms > before:
            if header.type in TOOL_ENDS or (header.type in TOOL_STEPS and has_output):
                name = "run"
            elif not has_output:
                name = "prefill"
            elif header.ms - before > pause:
                name = "silence"
            else:
                name = _phase(kind) if kind in GENERATION_KINDS else ""
            yield name, before, header.ms
            before = header.ms
        # Count also an event in the same millisecond as the previous event.
        # The result of a tool begins a new prompt.
        has_output = header.type not in TOOL_ENDS and (has_output or kind in GENERATION_KINDS)


def _median_gap(headers: Sequence[EventHeader]) -> int:
    """Return the median milliseconds between two deltas."""
    times = [header.ms for header in headers if header.type.endswith(DELTA)]
    gaps = sorted(later - earlier for earlier, later in pairwise(times))
    return gaps[len(gaps) // 2] if gaps else 0


def _merge(phases: Iterator[Span]) -> Iterator[Span]:
    """Merge adjacent phases of the same name. A phase without a name extends the previous phase."""
    current, since, until = next(phases)
    for name, start, end in phases:
        if name not in ("", current):
            yield current, since, until
            current, since = name, start
        until = end
    yield current, since, until
