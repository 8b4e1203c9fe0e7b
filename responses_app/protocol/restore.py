"""Restore open items from their own events, so that they can go on or be closed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

from responses_app.protocol.deltas import Annotation, Arguments, SearchStarted
from responses_app.protocol.events import CHANNELS
from responses_app.protocol.open_calls import FAMILIES, CodeInterpreterCall, SearchCall, StreamedCall
from responses_app.protocol.open_items import Encryptor, MessageItem, OpenItem, PartedItem, ReasoningItem

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


def open_item_of(told: Iterable[Json], seal: Encryptor | None = None) -> tuple[list[OpenItem], int]:
    """Return the items that these events leave open, in order, and how many items the events have opened."""
    found: dict[int, OpenItem] = {}
    count = 0
    for event in told:
        kind, index = event["type"], event.get("output_index")
        if kind == "response.output_item.added":
            found[event["output_index"]] = _begun(event, seal)
            count += 1
        elif kind == "response.output_item.done":
            del found[event["output_index"]]
        elif index in found:
            _again(found[index], kind, event)
    return [found[index] for index in sorted(found)], count


def _begun(event: Json, seal: Encryptor | None) -> OpenItem:
    item = FAMILIES[event["item"]["type"]](dict(event["item"]), event["output_index"])
    if isinstance(item, ReasoningItem):
        item.seal = seal
    return item


def _again(item: Any, kind: str, event: Json) -> None:
    """Apply one event to the item; the events that the item returns were emitted before."""
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
    elif isinstance(item, CodeInterpreterCall) and kind == "response.code_interpreter_call.interpreting":
        item.mark_running()
    elif isinstance(item, SearchCall) and kind.endswith("_search_call.searching"):
        item.mark_searching(SearchStarted())
