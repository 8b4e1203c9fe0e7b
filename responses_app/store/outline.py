"""The outline of a log: number, type and time of its events without what they say, so that ten thousand are read in a moment."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from responses_app.models import Event, Page
from responses_app.store.pages import unpack
from responses_app.store.records import Frame

# Longer logs are read in parts.
MOST = 20_000


class Mark(NamedTuple):
    """An event without its data. `ms` are milliseconds since the response was created."""

    number: int
    type: str
    ms: int


def outline(pk: int, after: int = -1) -> list[Mark]:
    """Up to MOST events behind `after`, in order."""
    rows = Event.objects.filter(response_id=pk, number__gt=after).order_by("number").values_list("number", "type", "ms")
    found = [Mark(number, type_, ms) for number, type_, ms in rows[:MOST]]
    # A log that is sealed between the two questions is found by the second, as in `replay.read`.
    return found or [Mark(frame.number, frame.type, frame.ms) for frame in _sealed(pk, after)][:MOST]


def told(pk: int, numbers: Iterable[int]) -> dict[int, Frame]:
    """These events in full, by number; those that there are."""
    wanted = set(numbers)
    if not wanted:
        return {}
    rows = Event.objects.filter(response_id=pk, number__in=wanted).values_list("number", "type", "data", "ms")
    found = {number: Frame(number, type_, data.encode(), ms) for number, type_, data, ms in rows}
    return found or {frame.number: frame for frame in _sealed(pk, min(wanted) - 1, max(wanted)) if frame.number in wanted}


def _sealed(pk: int, after: int, to: int | None = None) -> Iterable[Frame]:
    pages = Page.objects.filter(response_id=pk, last__gt=after).order_by("first")
    if to is not None:
        pages = pages.filter(first__lte=to)
    for data in pages.values_list("data", flat=True)[: MOST // 1000 + 2]:
        yield from (frame for frame in unpack(bytes(data)) if frame.number > after)
