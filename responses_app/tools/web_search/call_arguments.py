"""Arguments of web search calls. Chat models and gpt-oss have different names for some of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from responses_app.tools.arguments import InvalidArguments

MAX_PATTERN_LENGTH = 500
MAX_INTEGER = 10**9
_NUMBER = re.compile(r"-?[0-9]{1,9}")


def query(arguments: Mapping[str, Any]) -> str:
    """Return the query of a search. Raises InvalidArguments."""
    return _text(arguments, "query")


def pattern(arguments: Mapping[str, Any]) -> str:
    """Return the text to find. Raises InvalidArguments."""
    return _text(arguments, "pattern")[:MAX_PATTERN_LENGTH]


def url(arguments: Mapping[str, Any]) -> str | None:
    """Return the address of a page: `url`, or an `id` that is a text but no number; None without an address."""
    for key in ("url", "id"):
        value = arguments.get(key)
        if isinstance(value, str) and value.strip() and not _is_number(value):
            return value.strip()
    return None


def cursor(arguments: Mapping[str, Any]) -> int | None:
    """Return the number of a display; None without a number, or for the newest display (-1)."""
    value = integer(arguments, "cursor")
    return None if value is None or value < 0 else value


def integer(arguments: Mapping[str, Any], *names: str) -> int | None:
    """Return the first of the named arguments that is a whole number; None without such an argument."""
    for name in names:
        value = arguments.get(name)
        if isinstance(value, str) and _is_number(value):
            value = int(value)
        if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < MAX_INTEGER:
            return int(value)
    return None


def _text(arguments: Mapping[str, Any], name: str) -> str:
    value = arguments.get(name)
    if not isinstance(value, str) or not value.strip():
        raise InvalidArguments(f"The argument '{name}' must be a text that is not empty.")
    return value.strip()


def _is_number(value: str) -> bool:
    return _NUMBER.fullmatch(value.strip()) is not None
