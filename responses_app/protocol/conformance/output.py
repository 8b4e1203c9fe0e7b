"""Rules that look across items: which index, whose event, and what the terminal snapshot makes of them all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from responses_app.protocol.conformance.items import OWNERS, ItemRules
from responses_app.protocol.conformance.spec import ITEMS, is_vendor_type
from responses_app.protocol.conformance.violation import Findings, integer

CALLS: Final = ("function_call", "custom_tool_call")


class OutputRules:
    """All items that the stream told."""

    def __init__(self, profile: str, resumed: bool) -> None:
        self.types = ITEMS[profile]
        self.silent_reasoning = profile == "openresponses"
        self.resumed = resumed
        self.items: dict[int, ItemRules] = {}
        self.due: int | None = None if resumed else 0

    def feed(self, event: Mapping[str, Any]) -> Findings:
        """Judge an event that speaks of an item; others pass."""
        kind = event["type"]
        if kind == "response.output_item.added":
            yield from self._added(event)
        elif kind == "response.output_item.done" or kind.removeprefix("response.").partition(".")[0] in OWNERS:
            yield from self._inner(event)

    def _added(self, event: Mapping[str, Any]) -> Findings:
        index, opened = integer(event.get("output_index")), event.get("item")
        if index is None or (self.due is not None and index != self.due):
            yield "I1", f"output_index is {event.get('output_index')!r} and not {self.due}"
        if not isinstance(opened, Mapping):
            yield "I1", f"the item is {opened!r}"
            return
        place = index if index is not None else (self.due or 0)
        self.due = max(place, self.due or 0) + 1
        if str(opened.get("type")) not in self.types and not is_vendor_type(str(opened.get("type"))):
            yield "S5", f"an item of type {opened.get('type')!r}"
        yield from self._unlike_others(opened)
        item = ItemRules(place, opened)
        # A reused index is told above; the events that follow mean the newer item.
        self.items[place] = item
        yield from item.open()

    def _unlike_others(self, opened: Mapping[str, Any]) -> Findings:
        others = [item.opened for item in self.items.values()]
        if opened.get("id") in [other.get("id") for other in others]:
            yield "I2", f"another item has the id {opened.get('id')!r}"
        calls = [other.get("call_id") for other in others if other.get("type") in CALLS]
        if opened.get("type") in CALLS and opened.get("call_id") in calls:
            yield "I2", f"another call has the call_id {opened.get('call_id')!r}"

    def _inner(self, event: Mapping[str, Any]) -> Findings:
        index = integer(event.get("output_index"))
        if index is None:
            yield "I1", f"output_index is {event.get('output_index')!r}"
            return
        item = self.items.get(index)
        if item is None:
            if not self.resumed:
                yield "I2", f"no item was added at output_index {index}"
                return
            item = self.items[index] = self._resumed_item(index, event)
        if event["type"] == "response.output_item.done":
            yield from item.close(self._told(item, event.get("item")))
        else:
            yield from item.on_event(event)

    def _resumed_item(self, index: int, event: Mapping[str, Any]) -> ItemRules:
        # It was added before the resumed stream began: its past cannot be judged.
        opened = event.get("item")
        self.due = max(self.due or 0, index + 1)
        return ItemRules(index, opened if isinstance(opened, Mapping) else {"id": event.get("item_id")}, known=False)

    def _told(self, item: ItemRules, done: object) -> object:
        # The strict profile may keep raw reasoning out of the stream and tell it in the end (§3.11).
        quiet = self.silent_reasoning and item.type == "reasoning" and not item.closed["content"]
        if quiet and isinstance(done, Mapping) and isinstance(done.get("content"), list):
            item.closed["content"] = done["content"]
        return done

    def terminal(self, response: object) -> Findings:
        """I5, T6 and T7 at the terminal event."""
        if not isinstance(response, Mapping):
            return
        status, output = response.get("status"), response.get("output")
        open_ids = [item.id for item in self.items.values() if item.done is None]
        if status in ("completed", "incomplete"):
            for id_ in open_ids:
                yield "I5", f"the item {id_!r} was never done"
        if not isinstance(output, list):
            yield "T6", f"output is {output!r}"
            return
        yield from self._same(output, open_ids)
        if status == "completed":
            for item in output:
                if isinstance(item, Mapping) and item.get("status") in ("in_progress", "incomplete"):
                    yield "T7", f"{item.get('id')!r} is {item['status']} in a completed response"

    def _same(self, output: list[Any], open_ids: list[object]) -> Findings:
        done = {index: item.done for index, item in sorted(self.items.items()) if item.done is not None}
        if self.resumed:
            told = [_sealed(item) for item in done.values()]
            shown = [_sealed(output[index]) if index < len(output) else None for index in done]
        else:
            told = [_sealed(item) for item in done.values()]
            shown = [_sealed(x) for x in output if not (isinstance(x, Mapping) and x.get("id") in open_ids)]
        if told != shown:
            yield "T6", f"output has {len(output)} items and is not the {len(told)} that were done"


def _sealed(item: object) -> object:
    # OpenAI encrypts anew for every snapshot.
    return {k: v for k, v in item.items() if k != "encrypted_content"} if isinstance(item, Mapping) else item
