"""Names of the tools that a response has called, for the search of responses by tool."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from responses_app.protocol.items.registry import FAMILIES

MAX_NAME_LENGTH: Final = 200


def tool_names(items: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the names of the called functions, and the kinds of the called tools without a name, each once."""
    calls = ((item, FAMILIES[item["type"]].tool) for item in items if item["type"] in FAMILIES)
    names = {item.get("name") or tool for item, tool in calls if tool}
    # Postgres cannot store NUL, and a model may generate one.
    return sorted(name.replace("\0", "\ufffd")[:MAX_NAME_LENGTH] for name in names)
