"""The open item: what each family says as it opens, goes on and ends.

Every method returns events that are not numbered yet. The status of an item's end is a wish, `completed` or `incomplete`; what
the item became is in `body` afterwards. Nobody writes into a dict that an event already carries.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from responses_app.grammar import events
from responses_app.grammar.errors import GrammarError
from responses_app.grammar.events import Event
from responses_app.grammar.items import Item
from responses_app.grammar.parts import VOICES, Part, TextPart, new_part
from responses_app.grammar.pieces import (
    Annotation,
    Json,
    Reasoning,
    Refusal,
    Summary,
    Text,
)
from responses_app.grammar.pieces import Part as PartEnd

Saying: TypeAlias = Text | Refusal | Reasoning | Summary
Seal: TypeAlias = Callable[[Json], str]
"""Given a finished reasoning item, its `encrypted_content`."""

TYPES: Final[dict[type[Saying], str]] = {
    Text: "output_text",
    Refusal: "refusal",
    Reasoning: "reasoning_text",
    Summary: "summary_text",
}
UNLISTED: Final = "The response ended before the server had listed its tools."


class Opened:
    """An open item of any family; by itself, one that has nothing to say between `added` and `done`."""

    __slots__ = ("body", "id", "index", "kind")

    def __init__(self, body: Item, index: int) -> None:
        self.body = body
        self.kind: str = body["type"]
        self.id: str = body["id"]
        self.index = index

    def open(self) -> list[Event]:
        """The item opens."""
        return [events.item_added(self.index, self.body)]

    def close(self, status: str) -> list[Event]:
        """The item closes; `status` is put into items that have one."""
        return [self.done({"status": status} if "status" in self.body else {})]

    def holds(self, _piece: Saying) -> bool:
        """Whether this piece is more of this item."""
        return False

    def done(self, changes: Mapping[str, Any]) -> Event:
        """The closing event: the item as it opened, with what has come to it since."""
        self.body = {**self.body, **changes}
        return events.item_done(self.index, self.body)

    def stage(self, stage: str) -> Event:
        """How far the tool has come."""
        return events.progress(self.kind, stage, self.id, self.index)


class Speech(Opened):
    """An item made of parts: a message, or reasoning."""

    __slots__ = ("part", "shelves")

    def __init__(self, body: Item, index: int) -> None:
        super().__init__(body, index)
        self.part: Part | None = None
        self.shelves: dict[str, list[Item]] = {key: [] for key in ("summary", "content") if key in body}

    def say(self, type_: str, text: str, logprobs: Sequence[Json] = ()) -> list[Event]:
        """Text for a part of this type; opens one if it must."""
        part = self.part
        if part is not None and part.type == type_:
            return [part.say(text, logprobs)]
        return [*self.end_part(), *self._open_part(type_), self.part.say(text, logprobs)]  # type: ignore[union-attr]

    def hollow(self, type_: str) -> list[Event]:
        """A part of this type that says nothing (checklist 110)."""
        return [*self._open_part(type_), *self.end_part()]

    def rest(self, _piece: PartEnd) -> list[Event]:
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


class Message(Speech):
    """What the user reads."""

    __slots__ = ("phase",)

    def __init__(self, body: Item, index: int) -> None:
        super().__init__(body, index)
        self.phase = body.get("phase")

    def holds(self, piece: Saying) -> bool:
        """Texts of this phase, and refusals."""
        return piece.phase == self.phase if isinstance(piece, Text) else isinstance(piece, Refusal)

    def cite(self, piece: Annotation) -> list[Event]:
        """A citation of the open text. Raises GrammarError without one."""
        if not isinstance(self.part, TextPart):
            raise GrammarError("a citation needs an open text part")
        return [self.part.cite(piece.value)]


class Thought(Speech):
    """A reasoning item; `seal` makes its `encrypted_content`, which has no key otherwise."""

    __slots__ = ("seal",)

    def __init__(self, body: Item, index: int) -> None:
        super().__init__(body, index)
        self.seal: Seal | None = None

    def holds(self, piece: Saying) -> bool:
        """Raw text, and summaries until there is raw text (§2.3: summaries come first)."""
        if isinstance(piece, Summary):
            return not self.shelves["content"] and (self.part is None or self.part.type == "summary_text")
        return isinstance(piece, Reasoning)

    def done(self, changes: Mapping[str, Any]) -> Event:
        """The closing event, with the sealed content."""
        if self.seal is None:
            return super().done(changes)
        return super().done({**changes, "encrypted_content": self.seal({**self.body, **changes})})
