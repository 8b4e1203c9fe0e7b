"""Lists of stored responses: pages with filters, each a single query."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from django.db.models import Q, QuerySet

from responses_app.models import Response
from responses_app.store.log.reader import terminal_snapshot, with_last_event


@dataclass(frozen=True, slots=True)
class ResponseFilter:
    """Filters of a list of responses. None or an empty value matches everything."""

    model: str | None = None
    status: str | None = None
    api_format: str | None = None
    conversation: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    since: datetime | None = None
    until: datetime | None = None
    # Primary keys; empty matches nothing.
    keys: Collection[int] | None = None


@dataclass(frozen=True, slots=True)
class ResponsePage:
    """Page of responses with terminal snapshots as JSON bytes, None while running. `more`: whether more follow."""

    rows: Sequence[tuple[Response, bytes | None]]
    more: bool


async def page(
    project: str, filters: ResponseFilter, *, limit: int, newest_first: bool, after: str | None
) -> ResponsePage | None:
    """Read up to `limit` responses after the response `after`. None if `after` is not found."""
    rows = _filter(visible(project), filters)
    if after is not None:
        position = await Response.objects.filter(project=project, uid=after).values_list("pk", flat=True).afirst()
        if position is None:
            return None
        rows = rows.filter(pk__lt=position) if newest_first else rows.filter(pk__gt=position)
    page_rows = [
        row async for row in with_last_event(rows).order_by("-pk" if newest_first else "pk").defer("history")[: limit + 1]
    ]
    # Unpacking the ends of many long responses takes a second.
    snapshots = await asyncio.to_thread(lambda: [(row, terminal_snapshot(row)) for row in page_rows[:limit]])
    return ResponsePage(snapshots, len(page_rows) > limit)


def visible(project: str) -> QuerySet[Response]:
    """Return the responses that the API shows: without those of `store: false` that are stored only for their conversation."""
    return Response.objects.filter(Q(stored=True) | Q(background=True), project=project)


def storable_metadata(metadata: Mapping[str, str]) -> dict[str, str]:
    """Return `metadata` without NUL, which jsonb cannot hold: for rows of responses, and for filters of these."""
    return {key.replace("\0", ""): value.replace("\0", "") for key, value in metadata.items()}


def _filter(rows: QuerySet[Response], filters: ResponseFilter) -> QuerySet[Response]:
    conditions = {
        # Text of Postgres cannot hold NUL, and no model has a name with the character in its place.
        "model": (filters.model or "").replace("\0", "\ufffd"),
        "status": filters.status,
        "api_format": filters.api_format,
        "conversation__uid": filters.conversation,
        "metadata__contains": storable_metadata(filters.metadata),
        "created_at__gte": filters.since,
        "created_at__lt": filters.until,
    }
    rows = rows.filter(**{name: value for name, value in conditions.items() if value})
    return rows if filters.keys is None else rows.filter(pk__in=filters.keys)
