"""Grouping of consecutive deltas in the event list, with count, time and rate."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from responses_app.store.log.event_index import EventHeader
from responses_app.web.response.timelines.event_kinds import DELTA, event_kind

# Deltas of a summary that copies the reasoning come between those of the text, and are in the same groups.
COPIES: Final = {"response.reasoning_summary_text.delta": "response.reasoning_text.delta"}
# Shorter runs of deltas are not grouped.
MIN_GROUP: Final = 3


@dataclass(frozen=True, slots=True)
class EventGroup:
    """Single event, or a run of deltas of the same type, with copies. `before` is the time of the previous event in milliseconds."""

    headers: Sequence[EventHeader]
    before: int

    @property
    def first(self) -> EventHeader:
        """Return the first event."""
        return self.headers[0]

    @property
    def last(self) -> EventHeader:
        """Return the last event."""
        return self.headers[-1]

    @property
    def count(self) -> int:
        """Return the number of events."""
        return len(self.headers)

    @property
    def kind(self) -> str:
        """Return the kind of the events."""
        return event_kind(self.first.type)

    @property
    def later(self) -> int:
        """Return the milliseconds between the previous event and the first event."""
        return self.first.ms - self.before

    @property
    def took(self) -> int:
        """Return the milliseconds from the first event to the last."""
        return self.last.ms - self.first.ms

    @property
    def rate(self) -> float | None:
        """Return the deltas per second, without copies. A delta is usually a token."""
        count = sum(header.type == self.first.type for header in self.headers)
        return (count - 1) * 1000 / self.took if self.took > 0 else None


def group(headers: Sequence[EventHeader], *, opened: range = range(0), before: int = 0) -> list[EventGroup]:
    """Group consecutive deltas of the same type, except deltas with a number in `opened`."""
    return list(_groups(headers, opened, before))


def _groups(headers: Sequence[EventHeader], opened: range, before: int) -> Iterator[EventGroup]:
    def group_key(header: EventHeader) -> tuple[str, int]:
        single = not header.type.endswith(DELTA) or header.number in opened
        return COPIES.get(header.type, header.type), header.number if single else -1

    for _, group in groupby(headers, group_key):
        run = list(group)
        parts: Iterable[list[EventHeader]] = [run] if len(run) >= MIN_GROUP else ([header] for header in run)
        for part in parts:
            yield EventGroup(part, before)
            before = part[-1].ms
