"""How an age is written in settings and on the command line: `7d`, `12h`, `30m`, `45s`."""

from __future__ import annotations

import re
from datetime import timedelta

SHAPE = re.compile(r"(\d{1,6})([smhd])")
UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
NEVER = ("", "off")


def parse_duration(text: str) -> timedelta | None:
    """The age, None for `off` or nothing. Raises ValueError with what is expected."""
    if text in NEVER:
        return None
    match = SHAPE.fullmatch(text)
    if match is None:
        raise ValueError(f"an age such as 7d, 12h, 30m or 45s, or off, not {text!r}")
    return timedelta(**{UNITS[match[2]]: int(match[1])})
