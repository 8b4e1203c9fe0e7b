"""Kinds of events: the values of `?kind=` on the events page, and the phases of the timeline."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from responses_app.protocol.items.registry import FAMILIES

DELTA: Final = ".delta"
# Kinds of the events that the model writes.
GENERATION_KINDS: Final = frozenset({"reasoning", "text", "tools"})
# The beginning of an event type without `response.`, and its kind. The first match counts.
KIND_PREFIXES: Final = (
    ("reasoning", "reasoning"),
    ("output_text", "text"),
    ("content_part", "text"),
    ("refusal", "text"),
    ("output_item", "items"),
    ("created", "life"),
    ("queued", "life"),
    ("in_progress", "life"),
    ("completed", "life"),
    ("incomplete", "life"),
    ("failed", "life"),
)
# The values of `?kind=` and their labels.
LABELS: Final = {
    "life": "Lifecycle",
    "items": "Items",
    "reasoning": "Reasoning",
    "text": "Text",
    "tools": "Tools",
    "other": "Other",
}
KINDS: Final = tuple(LABELS)


@lru_cache(256)
def event_kind(event_type: str) -> str:
    """Return the kind of an event type, from `KINDS`."""
    event_name = event_type.removeprefix("response.")
    if event_name == event_type:
        return "life" if event_type == "error" else "other"
    kind_name = next((kind for prefix, kind in KIND_PREFIXES if event_name.startswith(prefix)), None)
    return kind_name or ("tools" if FAMILIES.of_event(event_type) else "other")
