"""One function reads a log back, for GET, for a resumed stream and for the browser alike."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

from asgiref.sync import sync_to_async
from django.db.models import OuterRef, QuerySet, Subquery

from responses_app.errors import InvalidRequest
from responses_app.models import Event, LogForm, LogPage, Response
from responses_app.store.log.page_codec import unpack
from responses_app.store.log.records import EventFrame

PAGE = 500
TERMINAL = frozenset({"response.completed", "response.incomplete", "response.failed"})
# How they begin: every event has its type first.
ENDINGS = tuple(f'{{"type":"{kind}",'.encode() for kind in sorted(TERMINAL))
# A log that ends in a terminal event has its snapshot as the last value of that event.
SNAPSHOT = b'"response":'


class DeltasErased(Exception):
    """The deltas of the log were erased while it was read."""


def check_replayable(row: Response) -> None:
    """The log can be replayed from beginning to end. Raises Invalid."""
    if row.log_form == LogForm.WITHOUT_DELTAS:
        raise InvalidRequest(
            "The detail of this response's events is no longer kept, so they cannot be streamed again. "
            "The response itself can be retrieved without 'stream'.",
            param="stream",
            code="events_not_kept",
        )


def read(pk: int, after: int = -1) -> list[EventFrame]:
    """A page of frames with numbers above `after`, in order, exactly as they were sent; empty behind the last one."""
    # Rows come first: a log that is sealed between the two questions is found whole by the second, and one that is not has all in its rows.
    return rows(pk, after) or _paged(pk, after)


def rows(pk: int, after: int = -1, limit: int = PAGE) -> list[EventFrame]:
    """Up to `limit` frames of a log that is not sealed."""
    found = Event.objects.filter(response_id=pk, number__gt=after).order_by("number")[:limit]
    told = found.values_list("number", "type", "data", "ms")
    return [EventFrame(number, type_, data.encode(), ms) for number, type_, data, ms in told]


def _paged(pk: int, after: int) -> list[EventFrame]:
    pages = LogPage.objects.filter(response_id=pk, last__gt=after).order_by("first").values_list("data", flat=True)
    # Two, as most logs have no more: the last event is alone in the second.
    return [frame for data in pages[:2] for frame in unpack(bytes(data)) if frame.number > after]


def last_number(pk: int) -> int:
    """The last number of a log; -1 if it is empty."""
    row = Event.objects.filter(response_id=pk).order_by("-number").values_list("number", flat=True).first()
    if row is None:
        row = LogPage.objects.filter(response_id=pk).order_by("-first").values_list("last", flat=True).first()
    return -1 if row is None else row


async def frames(pk: int, after: int = -1) -> list[EventFrame]:
    """What `read` reads."""
    return await sync_to_async(read)(pk, after)


async def frames_with_tokens(pk: int) -> list[tuple[EventFrame, bytes | None]]:
    """The whole log of a response that has not ended, and beside each frame what the model had said to make it."""
    rows = Event.objects.filter(response_id=pk).order_by("number").values_list("number", "type", "data", "ms", "tokens")
    return [
        (EventFrame(number, type_, data.encode(), ms), None if heard is None else bytes(heard))
        async for number, type_, data, ms, heard in rows
    ]


async def stored(pk: int, after: int = -1) -> AsyncGenerator[EventFrame, None]:
    """All frames with numbers above `after` that the log holds now. Raises Thinned rather than leave one out."""
    while page := await frames(pk, after):
        if page[-1].number - after != len(page):
            raise DeltasErased
        for frame in page:
            yield frame
        after = page[-1].number
        if page[-1].type in TERMINAL:
            return


async def snapshot(pk: int) -> bytes | None:
    """The terminal snapshot as JSON bytes, cut out of the terminal event; None while the response runs."""
    row = await with_last_event(Response.objects.filter(pk=pk)).only("pk").afirst()
    return terminal_snapshot(row) if row is not None else None


def with_last_event(responses: QuerySet[Response]) -> QuerySet[Any]:
    """The responses, each with where its log ends, in one query: one look into an index for each, whatever the log's length."""
    row = Event.objects.filter(response=OuterRef("pk")).order_by("-number")
    page = LogPage.objects.filter(response=OuterRef("pk")).order_by("-first")
    return responses.annotate(
        last_data=Subquery(row.values("data")[:1]),
        last_page=Subquery(page.values("data")[:1]),
    )


def last_event(row: Any) -> bytes | None:
    """The last event of a response out of `ends`."""
    if row.last_page is not None:
        return unpack(bytes(row.last_page))[-1].data
    data: str | None = row.last_data
    return None if data is None else data.encode()


def terminal_snapshot(row: Any) -> bytes | None:
    """The terminal snapshot of a response out of `ends`; None while it runs."""
    data = last_event(row)
    return snapshot_bytes(data) if data is not None and data.startswith(ENDINGS) else None


def snapshot_bytes(data: bytes) -> bytes:
    """The snapshot inside a lifecycle event: `response` is its last key, so its bytes can be taken as they are."""
    return data[data.index(SNAPSHOT) + len(SNAPSHOT) : -1]
