"""Pictures of one coloured shape, drawn anew each time: where, how large and on what ground is left to chance."""

from __future__ import annotations

import math
from random import Random
from typing import TYPE_CHECKING

from demo_training.exchanges.pictures import COLOURS, SHAPES

if TYPE_CHECKING:
    from PIL.Image import Image

Rgb = tuple[int, int, int]
Points = list[tuple[float, float]]
PAINT: dict[str, Rgb] = {
    "red": (220, 30, 30),
    "green": (30, 150, 50),
    "blue": (35, 70, 220),
    "yellow": (245, 220, 30),
    "orange": (250, 140, 20),
    "purple": (130, 40, 170),
    "pink": (250, 140, 190),
    "brown": (120, 70, 30),
    "black": (10, 10, 10),
    "white": (250, 250, 250),
    "grey": (130, 130, 130),
}
_GROUNDS: list[Rgb] = [
    (255, 255, 255),
    (255, 255, 255),
    (0, 0, 0),
    (235, 235, 235),
    (200, 220, 240),
    (250, 240, 220),
    (60, 60, 60),
]
# How much lighter or darker a colour may be, and how much another one.
_LIGHT, _TINT = 22, 8


def _jitter(r: Random, paint: Rgb) -> Rgb:
    light = r.randint(-_LIGHT, _LIGHT)
    red, green, blue = (max(0, min(255, value + light + r.randint(-_TINT, _TINT))) for value in paint)
    return red, green, blue


def _far(one: Rgb, other: Rgb) -> bool:
    return sum(abs(a - b) for a, b in zip(one, other, strict=True)) > 150


def _corners(count: int, turn: float, inner: float = 1.0) -> Points:
    """The corners of a regular figure around 0 with radius 1; with `inner`, every other one is nearer."""
    steps = count if inner == 1.0 else count * 2
    radii = [1.0 if n % 2 == 0 else inner for n in range(steps)]
    return [
        (rad * math.sin(turn + 2 * math.pi * n / steps), -rad * math.cos(turn + 2 * math.pi * n / steps))
        for n, rad in enumerate(radii)
    ]


_CROSS: Points = [(-0.3, -1), (0.3, -1), (0.3, -0.3), (1, -0.3), (1, 0.3), (0.3, 0.3), (0.3, 1), (-0.3, 1), (-0.3, 0.3)]
_CROSS += [(-1, 0.3), (-1, -0.3), (-0.3, -0.3)]
_HEART: Points = [
    (
        math.sin(2 * math.pi * n / 40) ** 3,
        -(13 * math.cos(t := 2 * math.pi * n / 40) - 5 * math.cos(2 * t) - 2 * math.cos(3 * t) - math.cos(4 * t)) / 17,
    )
    for n in range(40)
]
_OUTLINES: dict[str, Points] = {
    "square": [(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)],
    "triangle": _corners(3, 0.0),
    "star": _corners(5, 0.0, 0.42),
    "cross": _CROSS,
    "heart": _HEART,
    "diamond": [(0, -1), (0.68, 0), (0, 1), (-0.68, 0)],
}


def draw(r: Random, colour: str, shape: str) -> Image:
    """A picture of 64 to 256 points."""
    from PIL import Image, ImageDraw

    side = r.choice([64, 96, 128, 200, 256])
    paint = _jitter(r, PAINT[colour])
    ground = r.choice([one for one in _GROUNDS if _far(one, paint)] or [(255, 255, 255), (0, 0, 0)])
    # Drawn large and made smaller, so that edges are smooth.
    image = Image.new("RGB", (side * 2, side * 2), ground)
    pen = ImageDraw.Draw(image)
    size = r.uniform(0.25, 0.48) * side * 2
    x, y = (side + r.uniform(-1, 1) * (side - size) for _ in range(2))
    if shape in ("circle", "ring"):
        width = round(size * 0.3) if shape == "ring" else 0
        box = (x - size, y - size, x + size, y + size)
        pen.ellipse(box, fill=None if width else paint, outline=paint, width=width or 1)
    else:
        pen.polygon([(x + size * a, y + size * b) for a, b in _OUTLINES[shape]], fill=paint)
    return image.resize((side, side), Image.Resampling.LANCZOS)


def any_drawing(r: Random) -> tuple[str, str]:
    """A colour and a shape."""
    return r.choice(COLOURS), r.choice(SHAPES)
