"""Plot of a comparison as SVG: a bar for the median rate of each kind, and a line for the range of the rounds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape

from bench.compare.measurement import Sample
from bench.compare.report import NAMES, kinds, levels, spread
from bench.support.quantiles import Spread

WIDTH, HEIGHT = 760, 360
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 56, 40
COLORS = {
    "vllm": "#8c8c8c",
    "vllm-chat": "#bdbdbd",
    "agentic-api": "#c9a227",
    "stored": "#1f6fb4",
    "chat": "#2e8b57",
    "messages": "#8fbc8f",
    "worker": "#0b3c5d",
    "unstored": "#7fb6e3",
}
BAR_SHARE = 0.8
STEPS = 5
# Highest values of the axis that divide into STEPS round steps, as multiples of a power of ten.
ROUND_TOPS = (1.0, 1.5, 2.0, 2.5, 5.0, 10.0)


def draw(samples: Sequence[Sample], title: str) -> str:
    """Draw the rates of all kinds and levels."""
    top = axis_top(max(sample.rate for sample in samples))
    body = [*_axis(top), *_legend(kinds(samples)), *_groups(samples, top)]
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" font-family="sans-serif" font-size="12">'
        f'<title>{escape(title)}</title><rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>'
    )
    return "\n".join([head, _text(LEFT, 20, title, anchor="start", size=14), *body, "</svg>", ""])


def axis_top(highest: float) -> float:
    """Return the top of an axis with round steps for values up to `highest`."""
    power = 10 ** math.floor(math.log10(highest)) if highest > 0 else 1.0
    return next(share * power for share in ROUND_TOPS if share * power >= highest)


def _groups(samples: Sequence[Sample], top: float) -> Iterator[str]:
    every, present = levels(samples), kinds(samples)
    group = (WIDTH - LEFT - RIGHT) / len(every)
    bar = group * BAR_SHARE / len(present)
    for number, streams in enumerate(every):
        begin = LEFT + number * group + group * (1 - BAR_SHARE) / 2
        yield _text(begin + group * BAR_SHARE / 2, HEIGHT - BOTTOM + 18, f"{streams} streams" if streams > 1 else "1 stream")
        for place, kind in enumerate(present):
            rates = spread(samples, kind, streams, lambda sample: sample.rate)
            yield from _bar(begin + place * bar, bar * 0.9, rates, top, COLORS[kind])


def _bar(x: float, width: float, rates: Spread, top: float, color: str) -> Iterator[str]:
    y, middle = _height(rates.median, top), x + width / 2
    yield f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{HEIGHT - BOTTOM - y:.1f}" fill="{color}"/>'
    if rates.highest > rates.lowest:
        ends = f'y1="{_height(rates.highest, top):.1f}" y2="{_height(rates.lowest, top):.1f}"'
        yield f'<line x1="{middle:.1f}" x2="{middle:.1f}" {ends} stroke="#222"/>'


def _axis(top: float) -> Iterator[str]:
    for step in range(STEPS + 1):
        value = top * step / STEPS
        y = _height(value, top)
        yield f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>'
        yield _text(LEFT - 6, y + 4, f"{value:,.0f}", anchor="end")


def _legend(present: Sequence[str]) -> Iterator[str]:
    for number, kind in enumerate(present):
        x = LEFT + number * 170
        yield f'<rect x="{x}" y="32" width="12" height="12" fill="{COLORS[kind]}"/>'
        yield _text(x + 18, 42, NAMES[kind], anchor="start")


def _height(value: float, top: float) -> float:
    return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * value / top


def _text(x: float, y: float, text: str, anchor: str = "middle", size: int = 12) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="#222">{escape(text)}</text>'
