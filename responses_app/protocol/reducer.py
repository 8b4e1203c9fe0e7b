"""Reducer: the inverse of the writer, from events to the Response.

Items are rebuilt from their initial payload, their parts and their deltas. Only what no other event has (status, results, actions) is
taken from `output_item.done`, and nothing of the output is taken from the terminal snapshot. So `reduce_events(events)` equals the
terminal snapshot only if the stream contains what the snapshot contains.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias

from responses_app.protocol.content_parts import PartSpec
from responses_app.protocol.errors import ProtocolError
from responses_app.protocol.items.base import ExtraEvents
from responses_app.protocol.items.registry import FAMILIES, Registry

Json: TypeAlias = Mapping[str, Any]


class _ReducedPart:
    """State of a part: the opening payload, and the deltas since."""

    __slots__ = ("annotations", "logprobs", "opening", "texts")

    def __init__(self, opening: Json) -> None:
        self.opening = opening
        self.texts: list[str] = [opening.get("text") or ""]
        self.logprobs: list[Any] = list(opening.get("logprobs") or ())
        self.annotations: list[Any] = list(opening.get("annotations") or ())

    def value(self) -> dict[str, Any]:
        """Return the part in the wire form."""
        lists = {"annotations": self.annotations, "logprobs": self.logprobs}
        return {**self.opening, "text": "".join(self.texts), **{k: list(v) for k, v in lists.items() if k in self.opening}}


class _ReducedItem:
    """State of an item: the opening payload, the parts and deltas since, and the closing payload."""

    __slots__ = ("argument_key", "done", "extra", "extra_texts", "opening", "part_lists", "running_status", "texts")

    def __init__(self, opening: Json) -> None:
        self.opening = opening
        self.part_lists: dict[str, list[_ReducedPart]] = {}
        self.argument_key: str | None = None
        self.texts: list[str] = []
        self.extra: ExtraEvents | None = None
        self.extra_texts: list[str] = []
        self.running_status: str | None = None
        self.done: Json | None = None

    def value(self) -> dict[str, Any]:
        """Return the item in the wire form. Keys that deltas carried are never read from the closing payload."""
        item_fields: dict[str, Any] = {key: [part.value() for part in parts] for key, parts in self.part_lists.items()}
        if self.argument_key is not None:
            item_fields[self.argument_key] = "".join(self.texts)
        if self.done is None and self.running_status is not None:
            item_fields["status"] = self.running_status
        item = {**(self.opening if self.done is None else self.done), **item_fields}
        return item if self.extra is None else self.extra.merge(item, self.extra_texts)


class Reducer:
    """State of a response after the events so far."""

    def __init__(self, families: Registry = FAMILIES) -> None:
        self.families = families
        self.response: dict[str, Any] = {}
        self.items: dict[int, _ReducedItem] = {}
        self.ended = False

    def take(self, event: Json) -> None:
        """Apply an event. Events of unknown types change nothing."""
        kind = event["type"]
        part = self.families.part_deltas.get(kind)
        if part is not None:
            self._part_delta(event, part)
            return
        if not self.response and kind != "response.created":
            raise ProtocolError("these events do not begin with response.created")
        if kind in self.families.part_lists:
            self._part_added(event, self.families.part_lists[kind])
        elif kind in _ACTIONS:
            _ACTIONS[kind](self, event)
        elif kind in self.families.argument_keys:
            self._arguments(event, self.families.argument_keys[kind])
        elif kind in self.families.running_statuses:
            self._item(event).running_status = self.families.running_statuses[kind]
        elif kind in self.families.extra_events:
            self._extra(event, self.families.extra_events[kind])

    def snapshot(self, open_items: bool) -> dict[str, Any]:
        """Return the Response, with open items if `open_items`."""
        if not self.response:
            raise ProtocolError("there are no events")
        items = [self.items[index] for index in sorted(self.items)]
        shown = [item.value() for item in items if open_items or self.ended or item.done is not None]
        return {**self.response, "output": shown}

    def _lifecycle(self, event: Json) -> None:
        self.response = dict(event["response"])

    def _terminal(self, event: Json) -> None:
        self._lifecycle(event)
        self.ended = True

    def _added(self, event: Json) -> None:
        self.items[event["output_index"]] = _ReducedItem(event["item"])

    def _done(self, event: Json) -> None:
        self._item(event).done = event["item"]

    def _part_added(self, event: Json, list_key: str) -> None:
        self._item(event).part_lists.setdefault(list_key, []).append(_ReducedPart(event["part"]))

    def _part_delta(self, event: Json, spec: PartSpec) -> None:
        part = self._part(event, spec.list_key, spec.index_key)
        part.texts.append(event["delta"])
        if event.get("logprobs"):
            part.logprobs.extend(event["logprobs"])

    def _annotation(self, event: Json) -> None:
        self._part(event, "content", "content_index").annotations.append(event["annotation"])

    def _arguments(self, event: Json, key: str) -> None:
        item = self._item(event)
        item.argument_key = key
        item.texts.append(event["delta"])

    def _extra(self, event: Json, extra: ExtraEvents) -> None:
        item = self._item(event)
        item.extra = extra
        try:
            extra.collect[event["type"]](item.extra_texts, event)
        except IndexError:
            raise ProtocolError(f"{event['type']} before its opening") from None

    def _item(self, event: Json) -> _ReducedItem:
        try:
            return self.items[event["output_index"]]
        except KeyError:
            raise ProtocolError(f"{event['type']} before its item") from None

    def _part(self, event: Json, list_key: str, index_key: str) -> _ReducedPart:
        try:
            return self._item(event).part_lists[list_key][event[index_key]]
        except (KeyError, IndexError):
            raise ProtocolError(f"{event['type']} before its part") from None


_ACTIONS: Final[dict[str, Callable[[Reducer, Json], None]]] = {
    **dict.fromkeys(("response.created", "response.queued", "response.in_progress"), Reducer._lifecycle),
    **dict.fromkeys(("response.completed", "response.incomplete", "response.failed"), Reducer._terminal),
    "response.output_item.added": Reducer._added,
    "response.output_item.done": Reducer._done,
    "response.output_text.annotation.added": Reducer._annotation,
}


def fold(events: Iterable[Json], *, open_items: bool = False, families: Registry = FAMILIES) -> dict[str, Any]:
    """Return the Response that `events` describe; a prefix of a stream gives the snapshot of a running response.

    Open items are left out, or with `open_items` shown as far as their events go. Events may be as logged or as sent: `obfuscation`
    and `stream_id` are ignored. Raises ProtocolError for events without their opening.
    """
    reducer = Reducer(families)
    for event in events:
        reducer.take(event)
    return reducer.snapshot(open_items)


def ids_in_order(events: Iterable[Json]) -> list[str]:
    """Return the ids of the opened items and calls, in the order in which the writer made the ids.

    A continued run gives its new writer a factory that returns these ids first.
    """
    opened = (event["item"] for event in events if event["type"] == "response.output_item.added")
    return [item[key] for item in opened for key in ("id", "call_id") if item.get(key) is not None]
