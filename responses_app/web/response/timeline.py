"""The timeline of a response as a picture: what it was doing when, where it stood still, and how fast it spoke."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, TypeAlias

from responses_app.store.log.event_index import EventHeader
from responses_app.web.response.event_log.event_groups import DELTA, kind
from responses_app.web.response.rate import Bar, bars

WIDTH: Final = 1000.0
# A silence is longer than this, and much longer than usual.
SILENCE_MS: Final = 400
UNUSUAL: Final = 8
SPEAKING: Final = frozenset({"reasoning", "text", "tools"})
# The names of the phases, and how the page calls them.
LABELS: Final = {
    "queue": "Queued",
    "prefill": "Prefill",
    "reasoning": "Reasoning",
    "text": "Text",
    "tool": "Tool calls",
    "silence": "Stalled",
}
# What was done, from when to when; of ten thousand events there are as many.
Span: TypeAlias = tuple[str, int, int]


@dataclass(frozen=True, slots=True)
class Phase:
    """What was done from `start` to `end`, in milliseconds, and where that is in the picture."""

    name: str
    start: int
    end: int
    x: float = 0
    width: float = 0

    @property
    def took(self) -> int:
        """Milliseconds."""
        return self.end - self.start

    @property
    def label(self) -> str:
        """How the page calls it."""
        return LABELS[self.name]


@dataclass(frozen=True, slots=True)
class Timeline:
    """The phases in order, bars of the rate, and the whole time in milliseconds."""

    phases: Sequence[Phase]
    bars: Sequence[Bar]
    total: int

    @property
    def fastest(self) -> float:
        """The highest rate, in deltas per second."""
        return max((bar.rate for bar in self.bars), default=0.0)

    @property
    def sums(self) -> list[tuple[str, str, int]]:
        """Name, label and milliseconds of each phase, in the order in which they began."""
        found: dict[str, int] = {}
        for phase in self.phases:
            found[phase.name] = found.get(phase.name, 0) + phase.took
        return [(name, LABELS[name], ms) for name, ms in found.items()]


def timeline(marks: Sequence[EventHeader]) -> Timeline | None:
    """The picture of a log; None if no time passed in it."""
    if len(marks) < 2 or marks[-1].ms <= 0:
        return None
    total = marks[-1].ms
    placed = [
        Phase(name, start, end, round(start / total * WIDTH, 2), round(max((end - start) / total * WIDTH, 0.6), 2))
        for name, start, end in _merged(_phases(marks))
        if end > start
    ]
    return Timeline(placed, bars(_spoken(marks), total, WIDTH, _pause(marks)), total)


def _spoken(marks: Sequence[EventHeader]) -> Iterator[tuple[str, int]]:
    """Return the phase and the time of each delta."""
    words = ((kind(mark.type), mark) for mark in marks if mark.type.endswith(DELTA))
    return ((_phase(word), mark.ms) for word, mark in words if word in SPEAKING)


def _phase(word: str) -> str:
    return "tool" if word == "tools" else word


def _pause(marks: Sequence[EventHeader]) -> int:
    """Return how long a time between two events is no silence yet."""
    return max(SILENCE_MS, UNUSUAL * _usual(marks))


def _phases(marks: Sequence[EventHeader]) -> Iterator[Span]:
    """The time before each event is time of that event's kind; what comes before the first word is queue and prefill."""
    began = next((mark.ms for mark in marks if mark.type == "response.in_progress"), 0)
    queued = any(mark.type == "response.queued" for mark in marks[:3])
    yield "queue", 0, began if queued else 0
    pause, before, spoke = _pause(marks), began if queued else 0, False
    for mark in marks:
        word = kind(mark.type)
        if mark.ms > before:
            if not spoke:
                name = "prefill"
            elif mark.ms - before > pause:
                name = "silence"
            else:
                name = _phase(word) if word in SPEAKING else ""
            yield name, before, mark.ms
            before = mark.ms
        # Also one that shares its millisecond with the event before it.
        spoke = spoke or word in SPEAKING


def _usual(marks: Sequence[EventHeader]) -> int:
    """The usual time between two deltas: the median."""
    times = [mark.ms for mark in marks if mark.type.endswith(DELTA)]
    steps = sorted(later - earlier for earlier, later in pairwise(times))
    return steps[len(steps) // 2] if steps else 0


def _merged(phases: Iterator[Span]) -> Iterator[Span]:
    """Neighbours of one name as one; what has no name belongs to what was done before."""
    held, since, until = next(phases)
    for name, start, end in phases:
        if name not in ("", held):
            yield held, since, until
            held, since = name, start
        until = end
    yield held, since, until
