"""Output rules across items: output indexes, the item of each event, and the output of the terminal snapshot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from responses_app.protocol.conformance.items import ItemRules
from responses_app.protocol.conformance.spec import StreamSpec, is_vendor_type
from responses_app.protocol.conformance.streams import is_json
from responses_app.protocol.conformance.violation import Findings, integer

# Types of calls whose `call_id` must be unique.
CALLS: Final = ("function_call", "custom_tool_call")


class OutputRules:
    """All items of a stream. Several may be open at a time, with interleaved events.

    With `silent_reasoning`, a stream may leave out the deltas of raw reasoning and show its text when the item is done.
    """

    def __init__(self, spec: StreamSpec, resumed: bool, *, silent_reasoning: bool = False) -> None:
        self.spec = spec
        self.silent_reasoning = silent_reasoning
        self.resumed = resumed
        self.items: dict[int, ItemRules] = {}
        self.next_index: int | None = None if resumed else 0

    def feed(self, event: Mapping[str, Any]) -> Findings:
        """Check an event of an item; other events pass."""
        kind = event["type"]
        if kind == "response.output_item.added":
            yield from self._check_added(event)
        elif kind == "response.output_item.done" or kind.removeprefix("response.").partition(".")[0] in self.spec.owners:
            yield from self._check_item_event(event)

    def _check_added(self, event: Mapping[str, Any]) -> Findings:
        index, opened = integer(event.get("output_index")), event.get("item")
        if index is None or (self.next_index is not None and index != self.next_index):
            yield "I1", f"output_index is {event.get('output_index')!r} and not {self.next_index}"
        if not isinstance(opened, Mapping):
            yield "I1", f"the item is {opened!r}"
            return
        place = index if index is not None else (self.next_index or 0)
        self.next_index = max(place, self.next_index or 0) + 1
        if str(opened.get("type")) not in self.spec.item_types and not is_vendor_type(str(opened.get("type"))):
            yield "S5", f"an item of type {opened.get('type')!r}"
        yield from self._check_unique(opened)
        item = ItemRules(place, opened, self.spec)
        # A reused index is found above; the events that follow belong to the newer item.
        self.items[place] = item
        yield from item.open()

    def _check_unique(self, opened: Mapping[str, Any]) -> Findings:
        others = [item.opened for item in self.items.values()]
        if opened.get("id") in [other.get("id") for other in others]:
            yield "I2", f"another item has the id {opened.get('id')!r}"
        calls = [other.get("call_id") for other in others if other.get("type") in CALLS]
        if opened.get("type") in CALLS and opened.get("call_id") in calls:
            yield "I2", f"another call has the call_id {opened.get('call_id')!r}"

    def _check_item_event(self, event: Mapping[str, Any]) -> Findings:
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
            yield from item.close(self._closing_payload(item, event.get("item")))
        else:
            yield from item.on_event(event)

    def _resumed_item(self, index: int, event: Mapping[str, Any]) -> ItemRules:
        # The item was added before the resumed stream began, so its earlier events are not checked.
        opened = event.get("item")
        self.next_index = max(self.next_index or 0, index + 1)
        initial = opened if isinstance(opened, Mapping) else {"id": event.get("item_id")}
        return ItemRules(index, initial, self.spec, known=False)

    def _closing_payload(self, item: ItemRules, done: object) -> object:
        silent = self.silent_reasoning and item.type == "reasoning" and not item.closed["content"]
        if silent and isinstance(done, Mapping) and isinstance(done.get("content"), list):
            item.closed["content"] = done["content"]
        return done

    def terminal(self, response: object) -> Findings:
        """Check the terminal snapshot: I5, T6, T7 and T8."""
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
        yield from self._check_same(output, open_ids)
        yield from self._check_arguments(response.get("output_problems"))
        yield from self._check_problems(response.get("output_problems", []), output)
        if status == "completed":
            for item in output:
                if isinstance(item, Mapping) and item.get("status") in ("in_progress", "incomplete"):
                    yield "T7", f"{item.get('id')!r} is {item['status']} in a completed response"

    def _check_arguments(self, problems: object) -> Findings:
        """Check that `problems` names every completed call with arguments that are no JSON: C7."""
        entries = problems if isinstance(problems, list) else []
        named = {
            entry.get("output_index")
            for entry in entries
            if isinstance(entry, Mapping) and entry.get("type") == "invalid_tool_arguments"
        }
        for index, item in self.items.items():
            done = item.done or {}
            is_call = done.get("type") == "function_call" and done.get("status") in (None, "completed")
            if is_call and index not in named and not is_json(done.get("arguments")):
                yield "C7", f"arguments do not parse: {done.get('arguments')!r:.80}"

    def _check_problems(self, problems: object, output: list[Any]) -> Findings:
        for entry in problems if isinstance(problems, list) else [problems]:
            if not isinstance(entry, Mapping) or not all(isinstance(entry.get(key), str) for key in ("type", "message")):
                yield "T8", f"an output problem is {entry!r:.80}"
                continue
            index = integer(entry.get("output_index"))
            item = output[index] if index is not None and index < len(output) else None
            if "output_index" in entry and (not isinstance(item, Mapping) or item.get("id") != entry.get("item_id")):
                yield "T8", f"an output problem belongs to the item {entry.get('item_id')!r} at {entry['output_index']!r}"

    def _check_same(self, output: list[Any], open_ids: list[object]) -> Findings:
        closed = {index: item.done for index, item in sorted(self.items.items()) if item.done is not None}
        done = [_without_encrypted_content(item) for item in closed.values()]
        if self.resumed:
            shown = [_without_encrypted_content(output[index]) if index < len(output) else None for index in closed]
        else:
            shown = [_without_encrypted_content(x) for x in output if not (isinstance(x, Mapping) and x.get("id") in open_ids)]
        if done != shown:
            yield "T6", f"output has {len(output)} items and is not the {len(done)} that were done"


def _without_encrypted_content(item: object) -> object:
    # OpenAI encrypts again for every snapshot.
    return {k: v for k, v in item.items() if k != "encrypted_content"} if isinstance(item, Mapping) else item
