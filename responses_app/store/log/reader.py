"""Reader of event logs, in rows or archived, for GET, resumed streams and pages."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

from asgiref.sync import sync_to_async
from django.db.models import OuterRef, QuerySet, Subquery

from responses_app.errors import InvalidRequest
from responses_app.models import Event, LogForm, LogPage, Response
from responses_app.protocol.encoding import EventFrame
from responses_app.store.log.page_codec import unpack
from responses_app.store.log.rows.event_codec import LAST, LINE, ROW, rows_from, unpack_line, unpack_row

PAGE_SIZE = 500
TERMINAL = frozenset({"response.completed", "response.incomplete", "response.failed"})
# Terminal events by their first bytes: `type` is the first key of every event.
TERMINAL_PREFIXES = tuple(f'{{"type":"{kind}",'.encode() for kind in sorted(TERMINAL))
# The snapshot is the last value of a terminal event.
SNAPSHOT_KEY = b'"response":'


class DeltasErased(Exception):
    """The deltas of the log were erased during a read."""


def check_replayable(row: Response) -> None:
    """Check for a complete log. Raises InvalidRequest if the deltas were erased."""
    if row.log_form == LogForm.WITHOUT_DELTAS:
        raise InvalidRequest(
            "The detail of this response's events is no longer kept, so they cannot be streamed again. "
            "The response itself can be retrieved without 'stream'.",
            param="stream",
            code="events_not_kept",
        )


def read(pk: int, after: int = -1) -> list[EventFrame]:
    """Read the next frames with numbers above `after`, in order. Empty after the last event."""
    # Rows first: if the log is archived between the two queries, the second query finds all events.
    return rows(pk, after) or _archived(pk, after)


def rows(pk: int, after: int = -1, limit: int = PAGE_SIZE) -> list[EventFrame]:
    """Read the next frames of a log not archived, from up to `limit` rows."""
    stored = rows_from(pk, after + 1).values_list(*ROW)[:limit]
    return [frame for row in stored for frame in unpack_row(*row) if frame.number > after]


def _archived(pk: int, after: int) -> list[EventFrame]:
    pages = LogPage.objects.filter(response_id=pk, last__gt=after).order_by("first").values_list("data", flat=True)
    # Most logs have one page, or two: the last event of a long log is alone in a page.
    return [frame for data in pages[:2] for frame in unpack(bytes(data)) if frame.number > after]


def last_number(pk: int) -> int:
    """Return the number of the last event; -1 if the log is empty."""
    row = Event.objects.filter(response_id=pk).order_by("-number").values_list(LAST, flat=True).first()
    if row is None:
        row = LogPage.objects.filter(response_id=pk).order_by("-first").values_list("last", flat=True).first()
    return -1 if row is None else row


async def frames(pk: int, after: int = -1) -> list[EventFrame]:
    """Read the next frames, like `read`, without blocking the event loop."""
    return await sync_to_async(read)(pk, after)


async def frames_with_tokens(pk: int) -> list[tuple[EventFrame, bytes | None]]:
    """Read the whole log of a running response. The last frame of an append has the encoded tokens generated for the append."""
    pairs = list[tuple[EventFrame, bytes | None]]()
    async for *row, tokens in Event.objects.filter(response_id=pk).order_by("number").values_list(*ROW, "tokens"):
        *earlier, last = unpack_row(*row)
        pairs += [(frame, None) for frame in earlier]
        pairs.append((last, None if tokens is None else bytes(tokens)))
    return pairs


async def stored_frames(pk: int, after: int = -1) -> AsyncGenerator[EventFrame, None]:
    """Read all stored frames with numbers above `after`. Raises DeltasErased if a number is missing."""
    async for page in stored_pages(pk, after):
        for frame in page:
            yield frame


async def stored_pages(pk: int, after: int = -1) -> AsyncGenerator[list[EventFrame], None]:
    """Read all stored frames as `stored_frames`, a page at a time."""
    while page := await frames(pk, after):
        if page[-1].number - after != len(page):
            raise DeltasErased
        yield page
        after = page[-1].number
        if page[-1].type in TERMINAL:
            return


async def snapshot(pk: int) -> bytes | None:
    """Read the terminal snapshot as JSON bytes; None while the response runs."""
    # With the key itself Postgres plans with a single partition of pages.
    row = await with_last_event(Response.objects.filter(pk=pk), pk).only("pk").afirst()
    return terminal_snapshot(row) if row is not None else None


def with_last_event(responses: QuerySet[Response], pk: int | None = None) -> QuerySet[Any]:
    """Annotate responses, or the response `pk`, with the last event or page in the same query: an index lookup per response."""
    key = OuterRef("pk") if pk is None else pk
    row = Event.objects.filter(response=key).order_by("-number")
    page = LogPage.objects.filter(response=key).order_by("-first")
    return responses.annotate(
        last_line=Subquery(row.values_list(LINE)[:1]),
        last_page=Subquery(page.values("data")[:1]),
    )


def last_event(row: Any) -> bytes | None:
    """Return the last event of a response annotated by `with_last_event`."""
    if row.last_page is not None:
        return unpack(bytes(row.last_page))[-1].data
    return None if row.last_line is None else unpack_line(row.last_line)[-1].data


def terminal_snapshot(row: Any) -> bytes | None:
    """Return the terminal snapshot of a response annotated by `with_last_event`; None while running."""
    data = last_event(row)
    return snapshot_bytes(data) if data is not None and data.startswith(TERMINAL_PREFIXES) else None


def snapshot_bytes(data: bytes) -> bytes:
    """Cut the snapshot out of a lifecycle event. `response` is the last key of the event, so no parsing is needed."""
    return data[data.index(SNAPSHOT_KEY) + len(SNAPSHOT_KEY) : -1]
