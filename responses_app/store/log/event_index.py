"""Event headers: number, type and time of events, without the data, so that 10,000 headers load fast."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from django.db.models import Case, When

from responses_app.models import Event, LogPage
from responses_app.protocol.encoding import EventFrame
from responses_app.store.log.archive import EVENTS_PER_PAGE
from responses_app.store.log.page_codec import unpack, unpack_headers
from responses_app.store.log.rows.event_codec import ROW, rows_from, unpack_row

# Per call; read longer logs in several calls.
MAX_HEADERS = 20_000


class EventHeader(NamedTuple):
    """Event without data. `ms` is the time in milliseconds since the response was created."""

    number: int
    type: str
    ms: int


def event_headers(pk: int, after: int = -1) -> list[EventHeader]:
    """Read up to MAX_HEADERS headers of events with numbers above `after`, in order."""
    packed = Case(When(type="", then="packed"), default=b"{}")
    rows = rows_from(pk, after + 1).values_list("number", "type", packed, "ms")[:MAX_HEADERS]
    frames = (frame for row in rows for frame in unpack_row(*row) if frame.number > after)
    headers = [EventHeader(frame.number, frame.type, frame.ms) for frame in frames][:MAX_HEADERS]
    # A log archived between the two queries is found by the second query, as in `reader.read`.
    return headers or _archived_headers(pk, after)[:MAX_HEADERS]


def events_by_number(pk: int, numbers: Iterable[int]) -> dict[int, EventFrame]:
    """Read the events with `numbers` in full, by number. Missing numbers are left out."""
    remaining_numbers = set(numbers)
    if not remaining_numbers:
        return {}
    spans = rows_from(pk, min(remaining_numbers)).filter(number__lte=max(remaining_numbers)).values_list("number", "events")
    needed = [first for first, events in spans if not remaining_numbers.isdisjoint(range(first, first + (events or 1)))]
    rows = Event.objects.filter(response_id=pk, number__in=needed).values_list(*ROW)
    frames = {frame.number: frame for row in rows for frame in unpack_row(*row) if frame.number in remaining_numbers}
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
