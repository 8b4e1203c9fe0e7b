"""One function reads a log back, for GET, for a resumed stream and for the browser alike."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from responses_app.models import Event
from responses_app.store.records import Frame

PAGE = 500
TERMINAL = frozenset({"response.completed", "response.incomplete", "response.failed"})
# A log that ends in a terminal event has its snapshot as the last value of that event.
SNAPSHOT = b'"response":'


async def frames(pk: int, after: int = -1) -> list[Frame]:
    """Up to PAGE frames of a log with numbers above `after`, in order, exactly as they were sent."""
    rows = Event.objects.filter(response_id=pk, number__gt=after).order_by("number")[:PAGE]
    told = rows.values_list("number", "type", "data", "ms")
    return [Frame(number, type_, data.encode(), ms) async for number, type_, data, ms in told]


async def live(pk: int) -> list[tuple[Frame, bytes | None]]:
    """The whole log of a response that has not ended, and beside each frame what the model had said to make it."""
    rows = Event.objects.filter(response_id=pk).order_by("number").values_list("number", "type", "data", "ms", "tokens")
    return [
        (Frame(number, type_, data.encode(), ms), None if heard is None else bytes(heard))
        async for number, type_, data, ms, heard in rows
    ]


async def stored(pk: int, after: int = -1) -> AsyncGenerator[Frame, None]:
    """All frames with numbers above `after` that the log holds now."""
    while page := await frames(pk, after):
        for frame in page:
            yield frame
        after = page[-1].number


async def snapshot(pk: int) -> bytes | None:
    """The terminal snapshot as JSON bytes, cut out of the terminal event; None while the response runs."""
    row = await Event.objects.filter(response_id=pk).order_by("-number").values_list("type", "data").afirst()
    if row is None or row[0] not in TERMINAL:
        return None
    return cut(row[1].encode())


def cut(data: bytes) -> bytes:
    """The snapshot inside a lifecycle event: `response` is its last key, so its bytes can be taken as they are."""
    return data[data.index(SNAPSHOT) + len(SNAPSHOT) : -1]
