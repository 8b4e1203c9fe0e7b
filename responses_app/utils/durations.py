"""Durations in settings and command-line options: `7d`, `12h`, `30m`, `45s`."""

from __future__ import annotations

import re
from datetime import timedelta

FORMAT = re.compile(r"(\d{1,6})([smhd])")
# Seconds of a unit, the longest unit first.
LENGTHS_S = {"day": 86400, "hour": 3600, "minute": 60, "second": 1}
UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
NEVER = ("", "off")
# Longer ages would lead to times before the year 1, which no datetime can name.
MAX_DAYS = 36_500


def parse_duration(text: str) -> timedelta | None:
    """Parse a duration; None for `off` or an empty text. Raises ValueError with the expected format."""
    if text in NEVER:
        return None
    match = FORMAT.fullmatch(text)
    if match is None:
        raise ValueError(f"an age such as 7d, 12h, 30m or 45s, or off, not {text!r}")
    age = timedelta(**{UNITS[match[2]]: int(match[1])})
    if age > timedelta(days=MAX_DAYS):
        raise ValueError(f"an age such as 7d of at most {MAX_DAYS}d, or off, not {text!r}")
    return age


def describe_duration(age: timedelta) -> str:
    """Return a duration of whole seconds as a text in one unit, such as `10 minutes` or `36 hours`."""
    seconds = int(age.total_seconds())
    for unit, length_s in LENGTHS_S.items():
        if seconds and not seconds % length_s:
            return f"{seconds // length_s} {unit}{'s' * (seconds != length_s)}"
    return "0 seconds"
