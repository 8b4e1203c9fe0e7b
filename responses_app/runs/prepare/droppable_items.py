"""Which items `truncation: auto` may drop, oldest first (responses-api.md §3.5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

KEPT_ROLES = frozenset({"system", "developer"})


def droppable(items: Sequence[Mapping[str, Any]]) -> list[list[int]]:
    """The places of items that may go, in units that go together, oldest first.

    A call goes with its outputs, reasoning with what it led to. System and developer messages stay, and so do the last message of the
    user and whatever the list ends with.
    """
    units: dict[str, list[int]] = {}
    thought: list[int] = []
    for place, item in enumerate(items):
        if item["type"] == "reasoning":
            thought.append(place)
            continue
        # Several calls of one thought stay in units of their own: the thought goes with the first.
        units.setdefault(f"call {item['call_id']}" if "call_id" in item else f"item {place}", []).extend([*thought, place])
        thought = []
    users = [place for place, item in enumerate(items) if _role(item) == "user"]
    kept = {len(items) - 1, *users[-1:], *(place for place, item in enumerate(items) if _role(item) in KEPT_ROLES)}
    return [unit for unit in units.values() if kept.isdisjoint(unit)]


def _role(item: Mapping[str, Any]) -> str | None:
    return item.get("role") if item["type"] == "message" else None
