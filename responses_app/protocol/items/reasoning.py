"""Reasoning: raw reasoning text of the model, and a copy of the text as the summary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from responses_app.protocol.content_parts import OpenPart, PartSpec
from responses_app.protocol.encoding import EventFrame
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


SUMMARY_TEXT: Final = PartSpec(
    type="summary_text",
    added="response.reasoning_summary_part.added",
    delta="response.reasoning_summary_text.delta",
    done="response.reasoning_summary_text.done",
    closed="response.reasoning_summary_part.done",
    list_key="summary",
    index_key="summary_index",
)


@dataclass(slots=True)
class ReasoningDelta(Delta):
    """Raw reasoning text."""

    text: str


class ReasoningItem(PartedItem):
    """Open reasoning item. The summary, if any, is a copy of the reasoning text, in a part that is open beside the text's part."""

    __slots__ = ("summary",)

    def __init__(self, family: Family, body: Item, index: int) -> None:
        super().__init__(family, body, index)
        self.summary: OpenPart | None = None

    def append(self, spec: PartSpec, text: str, logprobs: Sequence[Json] = ()) -> list[Event]:
        """Append `text` to the reasoning text, and to the summary."""
        emitted = super().append(spec, text, logprobs)
        if not self.reasoning_form.has_summary:
            return emitted
        if self.summary is None:
            self.summary = OpenPart(SUMMARY_TEXT, self.id, self.index, 0)
            emitted.append(self.summary.open())
        return [*emitted, self.summary.append(text)]

    def append_encoded(self, delta: Any, number: int) -> EventFrame | None:
        """Append more text and return the only event; None with a summary, which has a separate event."""
        return None if self.reasoning_form.has_summary else super().append_encoded(delta, number)

    def end_part(self) -> list[Event]:
        """Close the open parts: the text first."""
        emitted = super().end_part()
        if self.summary is None:
            return emitted
        closing, part = self.summary.close()
        self.part_lists[SUMMARY_TEXT.list_key].append(part)
        self.summary = None
        return [*emitted, *closing]

    def done(self, changes: Json) -> Event:
        """Return the closing event, with the encrypted content."""
        encrypt = self.reasoning_form.encrypt
        if encrypt is None:
            return super().done(changes)
        return super().done({**changes, "encrypted_content": encrypt({**self.body, **changes})})


def _initial(_delta: ReasoningDelta, _new_id: IdFactory) -> Item:
    return {"status": "in_progress", "summary": [], "content": []}


REASONING: Final = Family(
    type="reasoning",
    id_prefix="rs_",
    item=ReasoningItem,
    opened_by={ReasoningDelta: ""},
    initial=_initial,
    parts={ReasoningDelta: REASONING_TEXT},
    derived_parts=(SUMMARY_TEXT,),
    final_statuses=COMPLETED_OR_INCOMPLETE,
)
