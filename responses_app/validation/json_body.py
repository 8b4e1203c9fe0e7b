"""Body of a request: a JSON object of limited depth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from responses_app.errors import InvalidRequest

# Levels of nesting. Events add levels around a tool's schema and must stay below orjson's limit of 254.
MAX_DEPTH = 100


def parse(body: bytes | str) -> dict[str, Any]:
    """Parse the JSON object in `body`. Raises InvalidRequest without a `param`."""
    try:
        raw = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        reason = (_utf8_problem(body) if isinstance(body, bytes) else None) or error
        raise InvalidRequest(f"We could not parse the JSON body of your request: {reason}.") from error
    if not isinstance(raw, dict):
        raise InvalidRequest("The body of your request must be a JSON object.")
    if has_more_levels(raw, MAX_DEPTH):
        raise InvalidRequest(f"The body of your request has more than {MAX_DEPTH} levels of nesting.")
    return raw


def _utf8_problem(body: bytes) -> str | None:
    """Return which byte is no UTF-8, in the words of orjson, which names the first character in this case; None if all are."""
    try:
        body.decode()
    except UnicodeDecodeError as error:
        before = body[: error.start].decode()
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        return f"byte 0x{body[error.start]:02x} is not valid UTF-8: line {line} column {column} (char {len(before)})"
    return None


def has_more_levels(raw: dict[str, Any] | Sequence[Any], levels: int) -> bool:
    """Return True if `raw` has arrays or objects below `levels` levels."""
    level: list[Any] = [raw]
    for _ in range(levels):
        children = (child for node in level for child in (node.values() if isinstance(node, dict) else node))
        level = [child for child in children if isinstance(child, dict | list)]
        if not level:
            return False
    return True
