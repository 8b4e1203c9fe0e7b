"""The timeline of a response as a picture: what it was doing when, where it stood still, and how fast it spoke."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, TypeAlias

from responses_app.store.outline import Mark
from responses_app.web.stretches import DELTA, kind

WIDTH: Final = 1000.0
HEIGHT: Final = 46.0
COLUMNS: Final = 120
# A silence is longer than this, and much longer than usual.
SILENCE_MS: Final = 400
UNUSUAL: Final = 8
SPEAKING: Final = frozenset({"reasoning", "text", "tools"})
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


@dataclass(frozen=True, slots=True)
class Timeline:
    """The phases in order, columns of the rate, the highest rate in deltas a second, and the whole time in milliseconds."""

    phases: Sequence[Phase]
    columns: Sequence[tuple[float, float, float, float]]
    fastest: float
    total: int

    @property
    def sums(self) -> list[tuple[str, int]]:
        """Milliseconds by phase, in the order in which they began."""
        found: dict[str, int] = {}
        for phase in self.phases:
            found[phase.name] = found.get(phase.name, 0) + phase.took
        return list(found.items())


def timeline(marks: Sequence[Mark]) -> Timeline | None:
    """The picture of a log; None if no time passed in it."""
    if len(marks) < 2 or marks[-1].ms <= 0:
        return None
    total = marks[-1].ms
    placed = [
        Phase(name, start, end, round(start / total * WIDTH, 2), round(max((end - start) / total * WIDTH, 0.6), 2))
        for name, start, end in _merged(_phases(marks))
        if end > start
    ]
    columns, fastest = _columns(marks, total)
    return Timeline(placed, columns, fastest, total)


def _phases(marks: Sequence[Mark]) -> Iterator[Span]:
    """The time before each event is time of that event's kind; what comes before the first word is queue and prefill."""
    began = next((mark.ms for mark in marks if mark.type == "response.in_progress"), 0)
    queued = any(mark.type == "response.queued" for mark in marks[:3])
    yield "queue", 0, began if queued else 0
    usual, before, spoke = _usual(marks), began if queued else 0, False
    for mark in marks:
        if mark.ms <= before:
            continue
        word = kind(mark.type)
        if not spoke:
            name = "prefill"
        elif mark.ms - before > max(SILENCE_MS, UNUSUAL * usual):
            name = "silence"
        else:
            name = {"tools": "tool"}.get(word, word) if word in SPEAKING else ""
        spoke = spoke or word in SPEAKING
        yield name, before, mark.ms
        before = mark.ms


def _usual(marks: Sequence[Mark]) -> int:
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


def _columns(marks: Sequence[Mark], total: int) -> tuple[list[tuple[float, float, float, float]], float]:
    """x, y, width and height of each column that is not empty, and what the highest one stands for."""
    counts = [0] * COLUMNS
    for mark in marks:
        if mark.type.endswith(DELTA):
            counts[min(mark.ms * COLUMNS // total, COLUMNS - 1)] += 1
    most, step = max(counts), WIDTH / COLUMNS
    heights = [round(count / most * HEIGHT, 2) if most else 0 for count in counts]
    drawn = [
        (round(place * step, 2), round(HEIGHT - height, 2), round(step - 1, 2), height)
        for place, height in enumerate(heights)
        if height
    ]
    return drawn, most * COLUMNS * 1000 / total
