"""One function reads a log back, for GET, for a resumed stream and for the browser alike."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from responses_app.models import Event, Response
from responses_app.store.records import Frame

PAGE = 500
POLL = 0.25
TERMINAL = frozenset({"response.completed", "response.incomplete", "response.failed"})
# A log that ends in a terminal event has its snapshot as the last value of that event.
SNAPSHOT = b'"response":'


async def frames(pk: int, after: int = -1) -> list[Frame]:
    """Up to PAGE frames of a log with numbers above `after`, in order, exactly as they were sent."""
    rows = Event.objects.filter(response_id=pk, number__gt=after).order_by("number")[:PAGE]
    return [Frame(number, type_, data.encode()) async for number, type_, data in rows.values_list("number", "type", "data")]


async def stored(pk: int, after: int = -1) -> AsyncGenerator[Frame, None]:
    """All frames with numbers above `after` that the log holds now."""
    while page := await frames(pk, after):
        for frame in page:
            yield frame
        after = page[-1].number


async def follow(pk: int, after: int = -1, pause: float = 10.0) -> AsyncGenerator[Frame | None, None]:
    """Frames with numbers above `after` until the terminal one, of a run in another process; None after `pause` seconds of silence."""
    silent = 0.0
    while True:
        # Asked before the log is read: a response that has ended by then has its terminal event in the log.
        ended = not await Response.objects.filter(pk=pk, ended_at=None).aexists()
        async for frame in stored(pk, after):
            after, silent = frame.number, 0.0
            yield frame
        if ended:
            return
        await asyncio.sleep(POLL)
        silent += POLL
        if silent >= pause:
            silent = 0.0
            yield None


async def snapshot(pk: int) -> bytes | None:
    """The terminal snapshot as JSON bytes, cut out of the terminal event; None while the response runs."""
    row = await Event.objects.filter(response_id=pk).order_by("-number").values_list("type", "data").afirst()
    if row is None or row[0] not in TERMINAL:
        return None
    return cut(row[1].encode())


def cut(data: bytes) -> bytes:
    """The snapshot inside a lifecycle event: `response` is its last key, so its bytes can be taken as they are."""
    return data[data.index(SNAPSHOT) + len(SNAPSHOT) : -1]
