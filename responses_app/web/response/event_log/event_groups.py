"""Events as people read a log: runs of deltas as one line each, with their count, their time and their rate."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import Final

from responses_app.store.log.event_index import EventHeader

DELTA: Final = ".delta"
# Fewer than this are shown one by one.
FEW: Final = 3
# The beginning of a type, without `response.`, and what it tells of. The first that fits.
KINDS: Final = (
    ("reasoning", "reasoning"),
    ("output_text", "text"),
    ("content_part", "text"),
    ("refusal", "text"),
    ("output_item", "items"),
    ("created", "life"),
    ("queued", "life"),
    ("in_progress", "life"),
    ("completed", "life"),
    ("incomplete", "life"),
    ("failed", "life"),
)
# The words of the URL, and how the page calls them.
LABELS: Final = {
    "life": "Lifecycle",
    "items": "Items",
    "reasoning": "Reasoning",
    "text": "Text",
    "tools": "Tools",
    "other": "Other",
}
ALL: Final = tuple(LABELS)


@lru_cache(256)
def kind(type_: str) -> str:
    """Of what an event of this type tells: a word of ALL."""
    rest = type_.removeprefix("response.")
    if rest == type_:
        return "life" if type_ == "error" else "other"
    known = next((word for start, word in KINDS if rest.startswith(start)), None)
    return known or ("tools" if "_call" in rest or rest.startswith("mcp_") else "other")


@dataclass(frozen=True, slots=True)
class EventGroup:
    """One event, or several deltas of one kind behind each other. `before` is the time of the event in front of it."""

    marks: Sequence[EventHeader]
    before: int

    @property
    def first(self) -> EventHeader:
        """Its first event."""
        return self.marks[0]

    @property
    def last(self) -> EventHeader:
        """Its last event."""
        return self.marks[-1]

    @property
    def count(self) -> int:
        """How many events it is."""
        return len(self.marks)

    @property
    def kind(self) -> str:
        """Of what it tells."""
        return kind(self.first.type)

    @property
    def later(self) -> int:
        """Milliseconds between the event before it and its first."""
        return self.first.ms - self.before

    @property
    def took(self) -> int:
        """Milliseconds from its first event to its last."""
        return self.last.ms - self.first.ms

    @property
    def rate(self) -> float | None:
        """Deltas a second, of which each is a token unless several came at once."""
        return (self.count - 1) * 1000 / self.took if self.took > 0 else None


def group(marks: Sequence[EventHeader], *, opened: range = range(0), before: int = 0) -> list[EventGroup]:
    """The marks in lines; deltas whose number is in `opened` are not drawn together."""
    return list(_drawn(marks, opened, before))


def _drawn(marks: Sequence[EventHeader], opened: range, before: int) -> Iterator[EventGroup]:
    def alike(mark: EventHeader) -> tuple[str, int]:
        single = not mark.type.endswith(DELTA) or mark.number in opened
        return mark.type, mark.number if single else -1

    for _, group in groupby(marks, alike):
        run = list(group)
        parts: Iterable[list[EventHeader]] = [run] if len(run) >= FEW else ([mark] for mark in run)
        for part in parts:
            yield EventGroup(part, before)
            before = part[-1].ms
