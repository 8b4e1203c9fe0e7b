"""Chart of the overview: five panels with a common time axis, as SVG coordinates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import floor, log10

from responses_app.web.overview.figures import Overview, ResponseFigures
from responses_app.web.overview.percentiles import PERCENTS
from responses_app.web.overview.time_range import TimeRange

WIDTH, PANEL, GAP = 600.0, 80.0, 12.0
MIN_BAR = 1.5
# Ends of a scale, in powers of ten. The half is a round number too.
ENDS = (1, 2, 4, 6, 8, 10)
UNITS = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
# Number of parts of the time axis, each with the time of its start.
AXIS_PARTS = 4
# Attributes of `ResponseFigures` with a panel of percentiles.
DISTRIBUTIONS = ("first", "rate", "total")


@dataclass(frozen=True, slots=True)
class Slot:
    """Part of the time axis with its figures: the row of the table, and a link over all panels."""

    since: datetime
    until: datetime
    figures: ResponseFigures
    refused: int
    x: float


@dataclass(frozen=True, slots=True)
class Shape:
    """Path of a panel: bars (filled) or a line; `name` is its CSS class."""

    name: str
    path: str


@dataclass(frozen=True, slots=True)
class Chart:
    """Shapes of all panels. `lines` are the y coordinates of their 0, half and end, `scales` the values there, `axis` times."""

    slots: Sequence[Slot]
    slot_width: float
    height: float
    shapes: Sequence[Shape]
    lines: Sequence[float]
    scales: Sequence[Sequence[str]]
    axis: Sequence[tuple[float, datetime]]


def chart(overview: Overview, time_range: TimeRange, refused: Sequence[int]) -> Chart:
    """Draw requests, tokens, time to first token, rate and duration over time. `refused` requests stand on those with responses."""
    width = WIDTH / time_range.slots
    slots = [
        Slot(time_range.start_of(number), time_range.start_of(number + 1), figures, refused[number], round(number * width, 1))
        for number, figures in enumerate(overview.slots)
    ]
    bars: list[list[tuple[str, Callable[[ResponseFigures], float]]]] = [
        [("all", lambda figures: figures.requests), ("failed", lambda figures: figures.failed)],
        [
            ("all", lambda figures: figures.input_tokens + figures.output_tokens),
            ("part", lambda figures: figures.output_tokens),
        ],
    ]
    shapes: list[Shape] = []
    ends: list[float] = []
    for panel, series in enumerate(bars):
        values = [[value_of(figures) for figures in overview.slots] for _, value_of in series]
        tops = [value + more for value, more in zip(values[0], refused, strict=True)] if panel == 0 else values[0]
        # The half of a count is a whole number.
        ends.append(max(scale_end(max(tops, default=0)), 2))
        if panel == 0:
            shapes.append(Shape("refused", _bars(tops, ends[-1], panel, values[0])))
        shapes += [Shape(name, _bars(heights, ends[-1], panel)) for (name, _), heights in zip(series, values, strict=True)]
    for panel, name in enumerate(DISTRIBUTIONS, len(bars)):
        lines = list(zip(*(getattr(figures, name).percentiles for figures in overview.slots), strict=True))
        ends.append(scale_end(max((value for line in lines for value in line if value is not None), default=0)))
        shapes += [Shape(f"p{percent}", _line(line, ends[-1], panel)) for percent, line in zip(PERCENTS, lines, strict=True)]
    count = len(ends)
    grid = [_base(panel) - part * (PANEL - GAP) for panel in range(count) for part in (0, 0.5, 1)]
    # Durations are in milliseconds, rates per 1,000 s.
    scales = [_scale(end if panel < len(bars) else end / 1000) for panel, end in enumerate(ends)]
    axis = [
        (WIDTH * part / AXIS_PARTS, time_range.axis_start + time_range.slots * time_range.step * part / AXIS_PARTS)
        for part in range(AXIS_PARTS)
    ]
    return Chart(slots, round(width, 1), count * PANEL, shapes, grid, scales, axis)


def scale_end(peak: float) -> float:
    """Return the end of a scale for values up to `peak`: a product of `ENDS` and a power of ten, or 0 without values."""
    if peak <= 0:
        return 0
    power = 10.0 ** floor(log10(peak))
    return next((end * power for end in ENDS if end * power >= peak), 10 * power)


def _scale(end: float) -> list[str]:
    """Format the end, the half and the 0 of a scale. Return an empty list for an end of 0."""
    return [_short(end), _short(end / 2), "0"] if end else []


def _short(value: float) -> str:
    """Format a number of a scale as 0.05, 2, 150, 20k."""
    divisor, unit = next(((divisor, unit) for divisor, unit in UNITS if value >= divisor), (1, ""))
    return f"{value / divisor:.6g}{unit}"


def _base(panel: int) -> float:
    """Return the y coordinate of the bottom of a panel."""
    return (panel + 1) * PANEL - GAP / 2


def _bars(values: Sequence[float], end: float, panel: int, bottoms: Sequence[float] | None = None) -> str:
    """Return a path with a bar for each value, from its value of `bottoms`, else from 0."""
    width, scale = WIDTH / len(values), (PANEL - GAP) / (end or 1)
    bottoms = bottoms or [0] * len(values)
    return "".join(
        f"M{number * width + 0.5:.1f} {_base(panel) - bottom * scale:.1f}v-{max((value - bottom) * scale, MIN_BAR):.1f}"
        f"h{width - 1:.1f}V{_base(panel) - bottom * scale:.1f}"
        for number, (value, bottom) in enumerate(zip(values, bottoms, strict=True))
        if value > bottom
    )


def _line(values: Sequence[float | None], end: float, panel: int) -> str:
    """Return a path through the middle of each slot. A slot without values interrupts it; a value on its own is a short line."""
    width = WIDTH / len(values)

    def points() -> Iterator[str]:
        is_open = False
        for number, value in enumerate(values):
            if value is not None:
                y = f"{_base(panel) - value / end * (PANEL - GAP):.1f}"
                yield (
                    f"L{(number + 0.5) * width:.1f} {y}"
                    if is_open
                    else f"M{(number + 0.3) * width:.1f} {y}H{(number + 0.5) * width:.1f}"
                )
            is_open = value is not None

    return "".join(points())
