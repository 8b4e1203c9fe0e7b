"""Bounds of the answers: a tool result fits into the context of an agent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import orjson

MAX_RESULT_CHARS: Final = 60_000
# Longest string in a result, tried in this order until the result fits.
STRING_CHARS: Final = (4_000, 1_000, 200)


def bound_text(value: Any) -> str:
    """Return `value` as JSON with at most MAX_RESULT_CHARS characters: long strings are cut first, then the JSON itself."""
    for longest in STRING_CHARS:
        text = _dump(_cut(value, longest))
        if len(text) <= MAX_RESULT_CHARS:
            return text
    return f"{text[:MAX_RESULT_CHARS]}\n… {len(text) - MAX_RESULT_CHARS} more characters. Ask for less."


def _cut(value: Any, longest: int) -> Any:
    if isinstance(value, str):
        return value if len(value) <= longest else f"{value[:longest]} … {len(value) - longest} more characters"
    if isinstance(value, Mapping):
        # `text` of a prompt has a limit of its own in tokens.
        return {key: _cut(one, longest if key != "prompt_text" else MAX_RESULT_CHARS // 2) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_cut(one, longest) for one in value]
    return value


def _dump(value: Any) -> str:
    return orjson.dumps(value, default=str).decode()
