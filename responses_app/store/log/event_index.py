"""Event headers: number, type and time of events, without the data, so that 10,000 headers load fast."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from responses_app.models import Event, LogPage
from responses_app.protocol.encoding import EventFrame
from responses_app.store.log.archive import EVENTS_PER_PAGE
from responses_app.store.log.page_codec import unpack, unpack_headers
from responses_app.store.log.rows.event_codec import STORED, unpack_event

# Per call; read longer logs in several calls.
MAX_HEADERS = 20_000


class EventHeader(NamedTuple):
    """Event without data. `ms` is the time in milliseconds since the response was created."""

    number: int
    type: str
    ms: int


def event_headers(pk: int, after: int = -1) -> list[EventHeader]:
    """Read up to MAX_HEADERS headers of events with numbers above `after`, in order."""
    rows = Event.objects.filter(response_id=pk, number__gt=after).order_by("number").values_list("number", "type", "ms")
    headers = [EventHeader(number, type_, ms) for number, type_, ms in rows[:MAX_HEADERS]]
    # A log archived between the two queries is found by the second query, as in `reader.read`.
    return headers or _archived_headers(pk, after)[:MAX_HEADERS]


def events_by_number(pk: int, numbers: Iterable[int]) -> dict[int, EventFrame]:
    """Read the events with `numbers` in full, by number. Missing numbers are left out."""
    remaining_numbers = set(numbers)
    if not remaining_numbers:
        return {}
    rows = Event.objects.filter(response_id=pk, number__in=remaining_numbers).values_list("number", "type", STORED, "ms")
    frames = {number: EventFrame(number, kind, unpack_event(number, kind, stored), ms) for number, kind, stored, ms in rows}
    return frames or {
        frame.number: frame for page in _pages(pk, remaining_numbers) for frame in unpack(page, remaining_numbers)
    }


def _archived_headers(pk: int, after: int) -> list[EventHeader]:
    pages = LogPage.objects.filter(response_id=pk, last__gt=after).order_by("first").values_list("data", flat=True)
    headers = (
        EventHeader(*header) for data in pages[: MAX_HEADERS // EVENTS_PER_PAGE + 2] for header in unpack_headers(bytes(data))
    )
    return [header for header in headers if header.number > after]


def _pages(pk: int, numbers: set[int]) -> Iterator[bytes]:
    """Read the pages with events of the given `numbers`."""
    spans = LogPage.objects.filter(response_id=pk, last__gte=min(numbers), first__lte=max(numbers)).order_by("first")
    needed = [first for first, last in spans.values_list("first", "last") if any(first <= number <= last for number in numbers)]
    for data in spans.filter(first__in=needed).values_list("data", flat=True):
        yield bytes(data)
