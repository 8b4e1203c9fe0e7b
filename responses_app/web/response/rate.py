"""The rate of deltas over time as bars: each covers deltas of one phase, and its height is their number divided by their time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

HEIGHT: Final = 46.0
MAX_BARS: Final = 120
# Times are whole milliseconds, and deltas may come in groups: a shorter bar would show the clock and not the rate.
MIN_DELTAS: Final = 8
MIN_WIDTH_MS: Final = 40


@dataclass(frozen=True, slots=True)
class Bar:
    """The rate in deltas per second from `start` to `end`, in milliseconds, and the place of the bar in the picture."""

    name: str
    start: int
    end: int
    rate: float
    x: float
    y: float
    width: float
    height: float


@dataclass(slots=True)
class _Span:
    """Deltas that came after `start` and up to `end`."""

    name: str
    start: int
    end: int
    count: int = 0

    @property
    def rate(self) -> float:
        return self.count * 1000 / (self.end - self.start)

    def is_enough(self, width: float) -> bool:
        """Whether it is wide enough for a bar of its own, and holds enough deltas."""
        return self.count >= MIN_DELTAS and self.end - self.start >= width


def bars(deltas: Iterable[tuple[str, int]], total: int, width: float, pause: int) -> list[Bar]:
    """Return the bars of deltas given by phase and time. A time between two deltas longer than `pause` has no bar."""
    least = max(total / MAX_BARS, MIN_WIDTH_MS)
    spans = [span for run in _runs(deltas, pause) for span in _spans(run, least)]
    fastest = max((span.rate for span in spans), default=0.0)
    return [_bar(span, fastest, width / total) for span in spans]


def _runs(deltas: Iterable[tuple[str, int]], pause: int) -> Iterator[tuple[str, list[int]]]:
    """Yield the phase and the times of deltas that follow each other without a pause."""
    name, times = "", list[int]()
    for phase, ms in deltas:
        if times and (phase != name or ms - times[-1] > pause):
            yield name, times
            times = []
        name = phase
        times.append(ms)
    if times:
        yield name, times


def _spans(run: tuple[str, Sequence[int]], least: float) -> list[_Span]:
    """Return the run in spans. What is left at its end belongs to the last one; a single moment has no rate."""
    name, times = run
    spans, current = list[_Span](), _Span(name, times[0], times[0])
    for ms in times:
        if ms > current.end and current.is_enough(least):
            spans.append(current)
            current = _Span(name, current.end, current.end)
        if ms > current.start:
            current.count, current.end = current.count + 1, ms
    if current.end == current.start:
        return spans
    if spans and not current.is_enough(least):
        last = spans[-1]
        last.count, last.end = last.count + current.count, current.end
        return spans
    return [*spans, current]


def _bar(span: _Span, fastest: float, scale: float) -> Bar:
    height = round(span.rate / fastest * HEIGHT, 2)
    wide = (span.end - span.start) * scale
    # A gap of a unit keeps neighbours apart where there is room for it.
    shown = max(wide - 1, wide * 0.8)
    return Bar(
        span.name,
        span.start,
        span.end,
        span.rate,
        round(span.start * scale, 2),
        round(HEIGHT - height, 2),
        round(shown, 2),
        height,
    )
