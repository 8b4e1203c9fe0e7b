"""Durations in settings and command-line options: `7d`, `12h`, `30m`, `45s`."""

from __future__ import annotations

import re
from datetime import timedelta

FORMAT = re.compile(r"(\d{1,6})([smhd])")
UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
NEVER = ("", "off")


def parse_duration(text: str) -> timedelta | None:
    """Parse a duration; None for `off` or an empty text. Raises ValueError with the expected format."""
    if text in NEVER:
        return None
    match = FORMAT.fullmatch(text)
    if match is None:
        raise ValueError(f"an age such as 7d, 12h, 30m or 45s, or off, not {text!r}")
    return timedelta(**{UNITS[match[2]]: int(match[1])})
