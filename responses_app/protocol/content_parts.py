"""Content parts: the description of a part type, and the open part of an item."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from responses_app.protocol.encoding import DeltaTemplate, EventFrame
from responses_app.protocol.events import Event

Part = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartSpec:
    """Description of a part type: the four events, and the keys in the wire form."""

    type: str
    added: str
    delta: str
    done: str
    closed: str
    # The key of the text in the part, the list of the item that holds the part, and the key of the index in that list.
    text_key: str = "text"
    list_key: str = "content"
    index_key: str = "content_index"
    # Keys of the part whose values are lists, empty when the part opens.
    list_keys: tuple[str, ...] = ()
    # Other names of the delta event, which streams of the Open Responses profile have.
    delta_aliases: tuple[str, ...] = ()

    def empty(self) -> Part:
        """Return the opening payload: an empty text, and empty lists."""
        return {"type": self.type, self.text_key: "", **{key: [] for key in self.list_keys}}


class OpenPart:
    """Open part. The text is collected as a list and joined at the end: `+=` on a growing text costs more with every delta."""

    __slots__ = ("_template", "location", "spec", "texts")

    def __init__(self, spec: PartSpec, item_id: str, output_index: int, index: int) -> None:
        self.spec = spec
        self.location = {"item_id": item_id, "output_index": output_index, spec.index_key: index}
        self.texts: list[str] = []
        self._template: DeltaTemplate | None = None

    def open(self) -> Event:
        """Return the event that opens the empty part."""
        return {"type": self.spec.added, **self.location, "part": self.spec.empty()}

    def append(self, text: str, logprobs: Sequence[Mapping[str, Any]] = ()) -> Event:
        """Append `text` and return the delta event."""
        self.texts.append(text)
        return self.delta_event(text, logprobs)

    def append_encoded(self, text: str, number: int) -> EventFrame:
        """Append `text` without log-probabilities and return the encoded delta event `number`."""
        self.texts.append(text)
        if self._template is None:
            self._template = DeltaTemplate(self.delta_event(""))
        return self._template.encode(number, text)

    def delta_event(self, text: str, _logprobs: Sequence[Mapping[str, Any]] = ()) -> Event:
        """Return the delta event of `text`."""
        return {"type": self.spec.delta, **self.location, "delta": text}

    def close(self) -> tuple[list[Event], Part]:
        """Return the last two events of the part, and the closed part."""
        text = "".join(self.texts)
        part = {**self.spec.empty(), self.spec.text_key: text}
        done = {"type": self.spec.done, **self.location, self.spec.text_key: text}
        return [done, {"type": self.spec.closed, **self.location, "part": part}], part
