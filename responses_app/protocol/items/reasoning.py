"""Reasoning: raw reasoning text of the model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from responses_app.protocol.content_parts import PartSpec
from responses_app.protocol.events import Event
from responses_app.protocol.ids import IdFactory
from responses_app.protocol.items.base import COMPLETED_OR_INCOMPLETE, Delta, Family, Item, Json
from responses_app.protocol.items.parted import PartedItem

REASONING_TEXT: Final = PartSpec(
    type="reasoning_text",
    added="response.content_part.added",
    delta="response.reasoning_text.delta",
    done="response.reasoning_text.done",
    closed="response.content_part.done",
    delta_aliases=("response.reasoning.delta",),
)


@dataclass(slots=True)
class ReasoningDelta(Delta):
    """Raw reasoning text."""

    text: str


class ReasoningItem(PartedItem):
    """Open reasoning item. `encrypt` makes the `encrypted_content`; without `encrypt` the item has no such key."""

    __slots__ = ()

    def done(self, changes: Json) -> Event:
        """Return the closing event, with the encrypted content."""
        if self.encrypt is None:
            return super().done(changes)
        return super().done({**changes, "encrypted_content": self.encrypt({**self.body, **changes})})


def _initial(_delta: ReasoningDelta, _new_id: IdFactory) -> Item:
    return {"status": "in_progress", "summary": [], "content": []}


REASONING: Final = Family(
    type="reasoning",
    id_prefix="rs_",
    item=ReasoningItem,
    opened_by={ReasoningDelta: ""},
    initial=_initial,
    parts={ReasoningDelta: REASONING_TEXT},
    final_statuses=COMPLETED_OR_INCOMPLETE,
)
