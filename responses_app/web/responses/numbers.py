"""Numbers of pages: whole numbers in URLs, and counts with nouns."""

from __future__ import annotations

# Python's `int` rejects thousands of digits, and no valid number has this many.
MAX_DIGITS = 30


def parse_number(text: str, maximum: int) -> int | None:
    """Parse a whole number, capped at `maximum`. Return None if `text` is not a number."""
    if not (text.isascii() and text.isdigit()):
        return None
    digits = text.lstrip("0") or "0"
    return maximum if len(digits) > MAX_DIGITS else min(int(digits), maximum)


def plural(count: int, noun: str) -> str:
    """Return the number with the noun: 1 response, 2 responses."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
