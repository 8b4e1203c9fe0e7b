"""Items that consist of parts: messages and reasoning."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from responses_app.protocol.content_parts import OpenPart, PartSpec
from responses_app.protocol.encoding import EventFrame
from responses_app.protocol.events import Event
from responses_app.protocol.items.base import Delta, Family, Item, Json, OpenItem


class PartedItem(OpenItem):
    """Open item that consists of parts. At most a single part of the deltas is open at a time."""

    __slots__ = ("part", "part_lists")

    def __init__(self, family: Family, body: Item, index: int) -> None:
        super().__init__(family, body, index)
        self.part: OpenPart | None = None
        self.part_lists: dict[str, list[Item]] = {part.list_key: [] for part in family.part_specs}

    def accepts(self, delta: Delta) -> bool:
        """Return whether the text of `delta` belongs to this item."""
        return delta.__class__ in self.family.parts

    def append(self, spec: PartSpec, text: str, logprobs: Sequence[Json] = ()) -> list[Event]:
        """Append `text` to the open part of this type; open the part if needed."""
        part = self.part
        if part is not None and part.spec is spec:
            return [part.append(text, logprobs)]
        closing = self.end_part()
        opened = self._new_part(spec)
        return [*closing, opened.open(), opened.append(text, logprobs)]

    def append_encoded(self, delta: Any, number: int) -> EventFrame | None:
        """Append more text of the open part and return the event; None for any other delta."""
        part = self.part
        if part is None or part.spec is not self.family.parts.get(delta.__class__) or not delta.text:
            return None
        return part.append_encoded(delta.text, number)

    def append_empty_part(self, spec: PartSpec) -> list[Event]:
        """Open and close a part without text."""
        opened = self._new_part(spec)
        return [opened.open(), *self.end_part()]

    def end_part(self) -> list[Event]:
        """Close the open part, if any."""
        part = self.part
        if part is None:
            return []
        emitted, closed = part.close()
        self.part_lists[part.spec.list_key].append(closed)
        self.part = None
        return emitted

    def close(self, status: str) -> list[Event]:
        """Close the open part, then the item."""
        emitted = self.end_part()
        return [*emitted, self.done({**self.part_lists, "status": status})]

    def replay(self, event: Json) -> None:
        """Apply a text delta or the end of a part."""
        for spec in self.family.parts.values():
            if event["type"] == spec.delta:
                self.append(spec, event["delta"], event.get("logprobs") or ())
            elif event["type"] == spec.closed and self.part is not None and self.part.spec is spec:
                self.end_part()

    def _new_part(self, spec: PartSpec) -> OpenPart:
        self.part = self.make_part(spec, len(self.part_lists[spec.list_key]))
        return self.part

    def make_part(self, spec: PartSpec, index: int) -> Any:
        """Make the open part of type `spec` at `index`."""
        return OpenPart(spec, self.id, self.index, index)
