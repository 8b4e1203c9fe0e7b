"""Sizes and durations as text."""

from __future__ import annotations

GB = 10**9
GIB = 2**30


def size_text(size: float) -> str:
    """Return a number of bytes in decimal units, as the model hub shows sizes."""
    for unit, factor in (("GB", GB), ("MB", 10**6), ("kB", 10**3)):
        if size >= factor:
            value = size / factor
            return f"{value:.1f} {unit}" if value < 100 else f"{value:.0f} {unit}"
    return f"{size:.0f} bytes"


def memory_text(size: float) -> str:
    """Return a number of bytes in GiB, as vLLM and `free` show memory."""
    return f"{size / GIB:.1f} GiB"


def time_text(seconds: float) -> str:
    """Return a duration as seconds, minutes or hours."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
