"""Rate of deltas over time as SVG bars. A bar covers deltas of the same phase, with the count divided by the time as height."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

HEIGHT: Final = 46.0
MAX_BARS: Final = 100
# Times are whole milliseconds and deltas may arrive in groups, so shorter bars would show noise.
MIN_DELTAS: Final = 8
MIN_WIDTH_MS: Final = 40


@dataclass(frozen=True, slots=True)
class RateBar:
    """The rate in deltas per second from `start` to `end`, in milliseconds, and SVG coordinates."""

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
    """Deltas of a phase after `start` and up to `end`, in milliseconds."""

    name: str
    start: int
    end: int
    count: int = 0

    @property
    def rate(self) -> float:
        return self.count * 1000 / (self.end - self.start)

    def is_enough(self, min_width_ms: float) -> bool:
        """Return True if the span has enough time and deltas for a bar."""
        return self.count >= MIN_DELTAS and self.end - self.start >= min_width_ms


def bars(deltas: Iterable[tuple[str, int]], total: int, width: float, pause: int) -> list[RateBar]:
    """Return the bars of `deltas`, pairs of phase and milliseconds. Gaps longer than `pause` milliseconds have no bar."""
    min_width_ms = max(total / MAX_BARS, MIN_WIDTH_MS)
    spans = [span for run in _runs(deltas, pause) for span in _spans(run, min_width_ms)]
    fastest = max((span.rate for span in spans), default=0.0)
    return [_bar(span, fastest, width / total) for span in spans]


def _runs(deltas: Iterable[tuple[str, int]], pause: int) -> Iterator[tuple[str, list[int]]]:
    """Yield the phase and the times of consecutive deltas without a pause."""
    name, times = "", list[int]()
    for phase, ms in deltas:
        if times and (phase != name or ms - times[-1] > pause):
            yield name, times
            times = []
        name = phase
        times.append(ms)
    if times:
        yield name, times


def _spans(run: tuple[str, Sequence[int]], min_width_ms: float) -> list[_Span]:
    """Split a run into spans. A too short rest extends the last span; a single point in time has no rate."""
    name, times = run
    spans, current = list[_Span](), _Span(name, times[0], times[0])
    for ms in times:
        if ms > current.end and current.is_enough(min_width_ms):
            spans.append(current)
            current = _Span(name, current.end, current.end)
        if ms > current.start:
            current.count, current.end = current.count + 1, ms
    if current.end == current.start:
        return spans
    if spans and not current.is_enough(min_width_ms):
        last = spans[-1]
        last.count, last.end = last.count + current.count, current.end
        return spans
    return [*spans, current]


def _bar(span: _Span, fastest: float, scale: float) -> RateBar:
    height = round(span.rate / fastest * HEIGHT, 2)
    full_width = (span.end - span.start) * scale
    # Leave a gap of one unit between wide bars.
    width = max(full_width - 1, full_width * 0.8)
    return RateBar(
        span.name,
        span.start,
        span.end,
        span.rate,
        round(span.start * scale, 2),
        round(HEIGHT - height, 2),
        round(width, 2),
        height,
    )
