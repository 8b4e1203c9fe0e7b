"""Restoration of open items from logged events, so that a writer can continue or close the items."""

from __future__ import annotations

from collections.abc import Iterable

from responses_app.protocol.items.base import PLAIN_REASONING, Json, OpenItem, ReasoningForm
from responses_app.protocol.items.registry import FAMILIES, Registry


def open_items_of(
    events: Iterable[Json], reasoning_form: ReasoningForm = PLAIN_REASONING, families: Registry = FAMILIES
) -> tuple[list[OpenItem], int]:
    """Return the items that `events` leave open, in order, and how many items the events have opened."""
    items_by_index: dict[int, OpenItem] = {}
    count = 0
    for event in events:
        index = event.get("output_index")
        if event["type"] == "response.output_item.added":
            items_by_index[event["output_index"]] = _new_item(event, reasoning_form, families)
            count += 1
        elif event["type"] == "response.output_item.done":
            del items_by_index[event["output_index"]]
        elif index in items_by_index:
            items_by_index[index].replay(event)
    return [items_by_index[index] for index in sorted(items_by_index)], count


def _new_item(event: Json, reasoning_form: ReasoningForm, families: Registry) -> OpenItem:
    family = families[event["item"]["type"]]
    item = family.item(family, dict(event["item"]), event["output_index"])
    item.reasoning_form = reasoning_form
    return item
