"""Pages of stored responses, by key and filter, in one query however many there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from django.db.models import Q, QuerySet

from responses_app.models import Response
from responses_app.store.log.reader import terminal_snapshot, with_last_event


@dataclass(frozen=True, slots=True)
class ResponseFilter:
    """What a list is narrowed to; what is None or empty narrows nothing."""

    model: str | None = None
    status: str | None = None
    conversation: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class ResponsePage:
    """Responses with their terminal snapshots as JSON bytes, None for one that runs; and whether more follow."""

    rows: Sequence[tuple[Response, bytes | None]]
    more: bool


async def page(
    project: str, wanted: ResponseFilter, *, limit: int, newest_first: bool, after: str | None
) -> ResponsePage | None:
    """Up to `limit` responses behind the response `after`. None if there is no such response."""
    rows = _narrowed(Response.objects.filter(Q(stored=True) | Q(background=True), project=project), wanted)
    if after is not None:
        mark = await Response.objects.filter(project=project, uid=after).values_list("pk", flat=True).afirst()
        if mark is None:
            return None
        rows = rows.filter(pk__lt=mark) if newest_first else rows.filter(pk__gt=mark)
    found = [row async for row in with_last_event(rows).order_by("-pk" if newest_first else "pk").defer("history")[: limit + 1]]
    return ResponsePage([(row, terminal_snapshot(row)) for row in found[:limit]], len(found) > limit)


def _narrowed(rows: QuerySet[Response], wanted: ResponseFilter) -> QuerySet[Response]:
    given = {
        "model": wanted.model,
        "status": wanted.status,
        "conversation__uid": wanted.conversation,
        "metadata__contains": dict(wanted.metadata),
        "created_at__gte": wanted.since,
        "created_at__lt": wanted.until,
    }
    return rows.filter(**{name: one for name, one in given.items() if one})
