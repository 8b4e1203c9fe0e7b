"""Pages of a response's input: its history and its own input items, by key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import orjson
from django.db.models import Q, QuerySet

from responses_app.models import Direction, Item, Response


@dataclass(frozen=True, slots=True)
class Page:
    """Items as (primary key, JSON), and whether more follow."""

    rows: Sequence[tuple[int, str]]
    more: bool

    @property
    def first(self) -> str | None:
        """Id of the first item."""
        return _id(self.rows[0]) if self.rows else None

    @property
    def last(self) -> str | None:
        """Id of the last item."""
        return _id(self.rows[-1]) if self.rows else None


async def page(row: Response, *, limit: int, newest_first: bool, after: str | None) -> Page | None:
    """Up to `limit` items behind the item `after`. None if there is no such item."""
    items = Item.objects.filter(Q(pk__in=row.history) | Q(response_id=row.pk, direction=Direction.INPUT))
    if after is not None:
        mark = await items.filter(uid=after).order_by("-pk").values_list("pk", flat=True).afirst()
        if mark is None:
            return None
        items = _behind(items, mark, newest_first)
    rows = [pair async for pair in items.order_by("-pk" if newest_first else "pk").values_list("pk", "body")[: limit + 1]]
    return Page(rows[:limit], len(rows) > limit)


def _behind(items: QuerySet[Item], mark: int, newest_first: bool) -> QuerySet[Item]:
    return items.filter(pk__lt=mark) if newest_first else items.filter(pk__gt=mark)


def _id(row: tuple[int, str]) -> str:
    uid: str = orjson.loads(row[1])["id"]
    return uid
