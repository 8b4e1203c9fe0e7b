"""Pages of stored responses, by key and filter, in one query however many there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import OuterRef, Q, QuerySet, Subquery

from responses_app.models import Event, Response
from responses_app.store.replay import TERMINAL, cut


@dataclass(frozen=True, slots=True)
class Filter:
    """What a list is narrowed to; what is None or empty narrows nothing."""

    model: str | None = None
    status: str | None = None
    conversation: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Shelf:
    """Responses with their terminal snapshots as JSON bytes, None for one that runs; and whether more follow."""

    rows: Sequence[tuple[Response, bytes | None]]
    more: bool


async def page(project: str, wanted: Filter, *, limit: int, newest_first: bool, after: str | None) -> Shelf | None:
    """Up to `limit` responses behind the response `after`. None if there is no such response."""
    rows = _narrowed(Response.objects.filter(Q(stored=True) | Q(background=True), project=project), wanted)
    if after is not None:
        mark = await Response.objects.filter(project=project, uid=after).values_list("pk", flat=True).afirst()
        if mark is None:
            return None
        rows = rows.filter(pk__lt=mark) if newest_first else rows.filter(pk__gt=mark)
    # Where a log ends, whatever its length: one look into its index for each row.
    last = Event.objects.filter(response=OuterRef("pk")).order_by("-number")
    rows = rows.annotate(kind=Subquery(last.values("type")[:1]), end=Subquery(last.values("data")[:1]))
    found = [row async for row in rows.order_by("-pk" if newest_first else "pk").defer("history")[: limit + 1]]
    return Shelf([(row, _snapshot(row)) for row in found[:limit]], len(found) > limit)


def _snapshot(row: Any) -> bytes | None:
    return cut(row.end.encode()) if row.kind in TERMINAL else None


def _narrowed(rows: QuerySet[Response], wanted: Filter) -> QuerySet[Response]:
    given = {
        "model": wanted.model,
        "status": wanted.status,
        "conversation__uid": wanted.conversation,
        "metadata__contains": dict(wanted.metadata),
        "created_at__gte": wanted.since,
        "created_at__lt": wanted.until,
    }
    return rows.filter(**{name: one for name, one in given.items() if one})
