"""Calls with an argument stream: JSON arguments, the input of a custom tool, or code."""

from __future__ import annotations

import json
from typing import NoReturn

from responses_app.protocol import events
from responses_app.protocol.encoding import DeltaTemplate, EventFrame
from responses_app.protocol.errors import ProtocolError
from responses_app.protocol.events import ArgumentStreamSpec, Event
from responses_app.protocol.items.base import Arguments, Delta, Family, Item, Json, OpenItem


class StreamedCall(OpenItem):
    """An open call with an argument stream. `arguments` is the complete text, None while the stream is open."""

    __slots__ = ("_template", "arguments", "stream", "texts")

    def __init__(self, family: Family, body: Item, index: int) -> None:
        super().__init__(family, body, index)
        assert family.argument_stream is not None  # noqa: S101 - the registry entry of a streamed call has a stream
        self.stream: ArgumentStreamSpec = family.argument_stream
        self.texts: list[str] = []
        self.arguments: str | None = None
        self._template: DeltaTemplate | None = None

    def append(self, delta: Arguments) -> list[Event]:
        """Append to the stream. Raises ProtocolError if the stream is complete."""
        if self.arguments is not None:
            raise ProtocolError(f"the {self.stream.key} of this {self.kind} are complete already")
        return self._append(delta.text)

    def append_encoded(self, delta: Delta, number: int) -> EventFrame | None:
        """Append more text of the open stream and return the event; None for any other delta."""
        if not isinstance(delta, Arguments) or self.arguments is not None or not delta.text:
            return None
        self.texts.append(delta.text)
        if self._template is None:
            self._template = DeltaTemplate(events.arguments_delta(self.stream, self.id, self.index, ""))
        return self._template.encode(number, delta.text)

    def body_so_far(self) -> Item:
        """Return the item with the text of the stream so far."""
        return {**self.body, self.stream.key: "".join(self.texts)}

    def finish_arguments(self, empty: str = "") -> list[Event]:
        """End the stream with a `.done` event, and with the text `empty` if there is no text. Repeated calls do nothing."""
        if self.arguments is not None:
            return []
        emitted = [] if "".join(self.texts).strip() else self._append(empty)
        self.arguments = "".join(self.texts)
        return [*emitted, events.arguments_done(self.stream, self.id, self.index, self.arguments)]

    def wait_for_result(self) -> list[Event]:
        """End the stream because another item begins; the result of the call is pending."""
        return self.finish_arguments(self.stream.empty)

    def close(self, status: str) -> list[Event]:
        """End the stream, then close the item."""
        emitted = self.finish_arguments(self.stream.empty if status == "completed" else "")
        return [*emitted, self.done({self.stream.key: self.arguments, "status": status})]

    def replay(self, event: Json) -> None:
        """Apply a delta or the end of the stream."""
        if event["type"] == self.stream.delta:
            self.append(Arguments(event["delta"]))
        elif event["type"] == self.stream.done:
            self.finish_arguments()

    def _append(self, text: str) -> list[Event]:
        if not text:
            return []
        self.texts.append(text)
        return [events.arguments_delta(self.stream, self.id, self.index, text)]


def _reject_constant(constant: str) -> NoReturn:
    raise ValueError(constant)


def is_json(text: str) -> bool:
    """Return whether `text` is JSON for every client: Python alone also accepts NaN and Infinity."""
    try:
        json.loads(text, parse_constant=_reject_constant)
    except (ValueError, RecursionError):
        return False
    return True
