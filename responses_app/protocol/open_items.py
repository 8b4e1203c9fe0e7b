"""The open item: what each family says as it opens, goes on and ends.

Every method returns events that are not numbered yet. The status of an item's end is a wish, `completed` or `incomplete`; what
the item became is in `body` afterwards. Nobody writes into a dict that an event already carries.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final, TypeAlias

from responses_app.protocol import events
from responses_app.protocol.content_parts import VOICES, OpenPart, OpenTextPart, new_part
from responses_app.protocol.deltas import Annotation, Json, ReasoningDelta, RefusalDelta, SummaryDelta, TextDelta
from responses_app.protocol.deltas import EndPart as PartEnd
from responses_app.protocol.errors import ProtocolError
from responses_app.protocol.events import Event
from responses_app.protocol.items import Item

TextualDelta: TypeAlias = TextDelta | RefusalDelta | ReasoningDelta | SummaryDelta
Encryptor: TypeAlias = Callable[[Json], str]
"""Given a finished reasoning item, its `encrypted_content`."""

TYPES: Final[dict[type[TextualDelta], str]] = {
    TextDelta: "output_text",
    RefusalDelta: "refusal",
    ReasoningDelta: "reasoning_text",
    SummaryDelta: "summary_text",
}
UNLISTED: Final = "The response ended before the server had listed its tools."


class OpenItem:
    """An open item of any family; by itself, one that has nothing to say between `added` and `done`."""

    __slots__ = ("body", "id", "index", "kind")
    # The server runs the tool of this family: the item stays open behind later items until its result is there.
    runs_on_server: ClassVar[bool] = False

    def __init__(self, body: Item, index: int) -> None:
        self.body = body
        self.kind: str = body["type"]
        self.id: str = body["id"]
        self.index = index

    def open(self) -> list[Event]:
        """The item opens."""
        return [events.item_added(self.index, self.body)]

    def wait_for_result(self) -> list[Event]:
        """End the argument stream, if the family has one, because another item begins."""
        return []

    def close(self, status: str) -> list[Event]:
        """The item closes; `status` is put into items that have one."""
        return [self.done({"status": status} if "status" in self.body else {})]

    def accepts(self, _piece: TextualDelta) -> bool:
        """Whether this piece is more of this item."""
        return False

    def done(self, changes: Mapping[str, Any]) -> Event:
        """The closing event: the item as it opened, with what has come to it since."""
        self.body = {**self.body, **changes}
        return events.item_done(self.index, self.body)

    def stage(self, stage: str) -> Event:
        """How far the tool has come."""
        return events.progress(self.kind, stage, self.id, self.index)


class PartedItem(OpenItem):
    """An item made of parts: a message, or reasoning."""

    __slots__ = ("part", "shelves")

    def __init__(self, body: Item, index: int) -> None:
        super().__init__(body, index)
        self.part: OpenPart | None = None
        self.shelves: dict[str, list[Item]] = {key: [] for key in ("summary", "content") if key in body}

    def append(self, type_: str, text: str, logprobs: Sequence[Json] = ()) -> list[Event]:
        """Text for a part of this type; opens one if it must."""
        part = self.part
        if part is not None and part.type == type_:
            return [part.append(text, logprobs)]
        return [*self.end_part(), *self._open_part(type_), self.part.append(text, logprobs)]  # type: ignore[union-attr]

    def empty_message(self, type_: str) -> list[Event]:
        """A part of this type that says nothing (checklist 110)."""
        return [*self._open_part(type_), *self.end_part()]

    def close_part(self, _piece: PartEnd) -> list[Event]:
        """The open part ends here."""
        return self.end_part()

    def end_part(self) -> list[Event]:
        """The open part closes, if there is one."""
        if self.part is None:
            return []
        told, whole = self.part.close()
        self.shelves[self.part.voice.shelf].append(whole)
        self.part = None
        return told

    def _open_part(self, type_: str) -> list[Event]:
        self.part = new_part(type_, self.id, self.index, len(self.shelves[VOICES[type_].shelf]))
        return [self.part.open()]

    def close(self, status: str) -> list[Event]:
        """The open part closes, then the item."""
        told = self.end_part()
        return [*told, self.done({**self.shelves, "status": status})]


class MessageItem(PartedItem):
    """What the user reads."""

    __slots__ = ("phase",)

    def __init__(self, body: Item, index: int) -> None:
        super().__init__(body, index)
        self.phase = body.get("phase")

    def accepts(self, piece: TextualDelta) -> bool:
        """Texts of this phase, and refusals."""
        return piece.phase == self.phase if isinstance(piece, TextDelta) else isinstance(piece, RefusalDelta)

    def annotate(self, piece: Annotation) -> list[Event]:
        """A citation of the open text. Raises GrammarError without one."""
        if not isinstance(self.part, OpenTextPart):
            raise ProtocolError("a citation needs an open text part")
        return [self.part.annotate(piece.value)]


class ReasoningItem(PartedItem):
    """A reasoning item; `seal` makes its `encrypted_content`, which has no key otherwise."""

    __slots__ = ("seal",)

    def __init__(self, body: Item, index: int) -> None:
        super().__init__(body, index)
        self.seal: Encryptor | None = None

    def accepts(self, piece: TextualDelta) -> bool:
        """Raw text, and summaries until there is raw text (§2.3: summaries come first)."""
        if isinstance(piece, SummaryDelta):
            return not self.shelves["content"] and (self.part is None or self.part.type == "summary_text")
        return isinstance(piece, ReasoningDelta)

    def done(self, changes: Mapping[str, Any]) -> Event:
        """The closing event, with the sealed content."""
        if self.seal is None:
            return super().done(changes)
        return super().done({**changes, "encrypted_content": self.seal({**self.body, **changes})})
