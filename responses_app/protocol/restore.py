"""An open item made again from its own events, so that it can be closed as it should."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

from responses_app.protocol.deltas import Annotation, Arguments
from responses_app.protocol.events import CHANNELS
from responses_app.protocol.open_calls import FAMILIES, StreamedCall
from responses_app.protocol.open_items import MessageItem, OpenItem, PartedItem

Json: TypeAlias = Mapping[str, Any]
_PARTS: Final = {
    "response.output_text.delta": "output_text",
    "response.refusal.delta": "refusal",
    "response.reasoning_text.delta": "reasoning_text",
    "response.reasoning_summary_text.delta": "summary_text",
}
_ENDS: Final = frozenset({"response.content_part.done", "response.reasoning_summary_part.done"})
_SAID: Final = frozenset(channel.delta for channel in CHANNELS.values())
_SEALED: Final = frozenset(channel.done for channel in CHANNELS.values())


def open_item_of(told: Iterable[Json]) -> tuple[OpenItem | None, int]:
    """The item that these events leave open, if one is, and how many they have opened."""
    item: OpenItem | None = None
    count = 0
    for event in told:
        kind = event["type"]
        if kind == "response.output_item.added":
            item = FAMILIES[event["item"]["type"]](dict(event["item"]), event["output_index"])
            count += 1
        elif kind == "response.output_item.done":
            item = None
        elif item is not None:
            _again(item, kind, event)
    return item, count


def _again(item: Any, kind: str, event: Json) -> None:
    """What the item said then it says now, to nobody."""
    if isinstance(item, PartedItem) and kind in _PARTS:
        item.append(_PARTS[kind], event["delta"], event.get("logprobs") or ())
    elif isinstance(item, PartedItem) and kind in _ENDS:
        item.end_part()
    elif isinstance(item, MessageItem) and kind == "response.output_text.annotation.added":
        item.annotate(Annotation(event["annotation"]))
    elif isinstance(item, StreamedCall) and kind in _SAID:
        item.append(Arguments(event["delta"]))
    elif isinstance(item, StreamedCall) and kind in _SEALED:
        item.finish_arguments()
