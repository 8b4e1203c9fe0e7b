"""The outline of a log: number, type and time of its events without what they say, so that ten thousand are read in a moment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from responses_app.models import Event, LogPage
from responses_app.store.log.page_codec import outline as pages_outline
from responses_app.store.log.page_codec import unpack
from responses_app.store.log.records import EventFrame

# Longer logs are read in parts.
MOST = 20_000


class EventHeader(NamedTuple):
    """An event without its data. `ms` are milliseconds since the response was created."""

    number: int
    type: str
    ms: int


def outline(pk: int, after: int = -1) -> list[EventHeader]:
    """Up to MOST events behind `after`, in order."""
    rows = Event.objects.filter(response_id=pk, number__gt=after).order_by("number").values_list("number", "type", "ms")
    found = [EventHeader(number, type_, ms) for number, type_, ms in rows[:MOST]]
    # A log that is sealed between the two questions is found by the second, as in `replay.read`.
    return found or _sealed(pk, after)[:MOST]


def events_by_number(pk: int, numbers: Iterable[int]) -> dict[int, EventFrame]:
    """These events in full, by number; those that there are."""
    wanted = set(numbers)
    if not wanted:
        return {}
    rows = Event.objects.filter(response_id=pk, number__in=wanted).values_list("number", "type", "data", "ms")
    found = {number: EventFrame(number, type_, data.encode(), ms) for number, type_, data, ms in rows}
    return found or {frame.number: frame for page in _pages(pk, wanted) for frame in unpack(page, wanted)}


def _sealed(pk: int, after: int) -> list[EventHeader]:
    pages = LogPage.objects.filter(response_id=pk, last__gt=after).order_by("first").values_list("data", flat=True)
    marks = (EventHeader(*mark) for data in pages[: MOST // 1000 + 2] for mark in pages_outline(bytes(data)))
    return [mark for mark in marks if mark.number > after]


def _pages(pk: int, wanted: set[int]) -> Iterator[bytes]:
    """Those in which these numbers are."""
    spans = LogPage.objects.filter(response_id=pk, last__gte=min(wanted), first__lte=max(wanted)).order_by("first")
    keys = [key for key, first, last in spans.values_list("pk", "first", "last") if any(first <= one <= last for one in wanted)]
    for data in LogPage.objects.filter(pk__in=keys).order_by("first").values_list("data", flat=True):
        yield bytes(data)
