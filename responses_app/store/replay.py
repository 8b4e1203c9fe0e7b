"""One function reads a log back, for GET, for a resumed stream and for the browser alike."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import orjson

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


async def follow(pk: int, after: int = -1) -> AsyncGenerator[Frame | None, None]:
    """Frames with numbers above `after` until the terminal one; None whenever the log has nothing new for now.

    A log without a terminal event whose response has ended (it cannot happen while the recorder is the only writer) ends too.
    """
    while True:
        page = await frames(pk, after)
        for frame in page:
            after = frame.number
            yield frame
            if frame.type in TERMINAL:
                return
        if not page:
            if await Response.objects.filter(pk=pk, ended_at=None).aexists() is False:
                return
            yield None
            await asyncio.sleep(POLL)


async def snapshot(pk: int) -> bytes | None:
    """The terminal snapshot as JSON bytes, cut out of the terminal event; None while the response runs."""
    row = await Event.objects.filter(response_id=pk).order_by("-number").values_list("type", "data").afirst()
    if row is None or row[0] not in TERMINAL:
        return None
    return cut(row[1].encode())


def cut(data: bytes) -> bytes:
    """The snapshot inside a lifecycle event: `response` is its last key, so its bytes can be taken as they are."""
    return data[data.index(SNAPSHOT) + len(SNAPSHOT) : -1]


def events(page: list[Frame]) -> list[dict[str, object]]:
    """Frames decoded."""
    return [orjson.loads(frame.data) for frame in page]
