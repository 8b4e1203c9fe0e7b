"""Types of arguments of several commands."""

from __future__ import annotations

import math
from argparse import ArgumentTypeError
from collections.abc import Callable
from contextlib import suppress

from responses_app.access import tool_access


def text_up_to(max_length: int) -> Callable[[str], str]:
    """Return the type of a text of 1 to `max_length` characters, without white space around them."""

    def parse(text: str) -> str:
        text = text.strip()
        if not 0 < len(text) <= max_length:
            raise ArgumentTypeError(f"must have 1 to {max_length} characters, not {len(text)}")
        return text

    return parse


def parse_seconds(text: str) -> float:
    """Parse a number of seconds from 0 on. Raises ArgumentTypeError."""
    with suppress(ValueError):
        if 0 <= (seconds := float(text)) < math.inf:
            return seconds
    raise ArgumentTypeError(f"must be a number of seconds from 0 on, not {text!r}")


def tool_name(text: str) -> str:
    """Return the argument, a name of a list of allowed tools. Raises ArgumentTypeError with the names that there are."""
    names = tool_access.known_names()
    if text not in names:
        raise ArgumentTypeError(f"must be one of {', '.join(names)}, not {text!r}")
    return text
