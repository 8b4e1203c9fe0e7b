"""Whole numbers from the address of a page."""

from __future__ import annotations

# Python refuses to read thousands of digits, and no key or place has as many as these.
MOST_DIGITS = 30


def read_number(text: str, largest: int) -> int | None:
    """The number that the text is, at most `largest`; None if it is no number."""
    if not (text.isascii() and text.isdigit()):
        return None
    digits = text.lstrip("0") or "0"
    return largest if len(digits) > MOST_DIGITS else min(int(digits), largest)
