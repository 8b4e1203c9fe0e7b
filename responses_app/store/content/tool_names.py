"""Which tools a response has called, by the names that people look for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

CALL = "_call"
LONGEST = 200


def tool_names(items: Iterable[Mapping[str, Any]]) -> list[str]:
    """The names of functions, or of kinds of tools that have none, each once."""
    names = {item.get("name") or item["type"].removesuffix(CALL) for item in items if item["type"].endswith(CALL)}
    # Postgres holds no NUL, and a model may say anything.
    return sorted(name.replace("\0", "\ufffd")[:LONGEST] for name in names)
