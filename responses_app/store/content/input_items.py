"""Input items of a response, in pages: the history and the own input items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import orjson

from responses_app.models import Direction, Item, Response


@dataclass(frozen=True, slots=True)
class ItemPage:
    """Page of items as (primary key, JSON). `more`: whether more items follow."""

    rows: Sequence[tuple[int, str]]
    more: bool

    @property
    def size(self) -> int:
        """Number of characters of the items."""
        return sum(len(body) for _, body in self.rows)

    @property
    def first(self) -> str | None:
        """Id of the first item; None if empty."""
        return _id(self.rows[0]) if self.rows else None

    @property
    def last(self) -> str | None:
        """Id of the last item; None if empty."""
        return _id(self.rows[-1]) if self.rows else None


async def page(row: Response, *, limit: int, newest_first: bool, after: str | None) -> ItemPage | None:
    """Read up to `limit` items after the item `after`. None if `after` is not found."""
    own_items = Item.objects.filter(response_id=row.pk, direction=Direction.INPUT).order_by("pk")
    # A history from a conversation has the order of the conversation, which may differ from the order of primary keys.
    keys = [*row.history, *[pk async for pk in own_items.values_list("pk", flat=True)]]
    if newest_first:
        keys.reverse()
    if after is not None:
        position = await Item.objects.filter(pk__in=keys, uid=after).order_by("-pk").values_list("pk", flat=True).afirst()
        if position is None:
            return None
        keys = keys[keys.index(position) + 1 :]
    bodies = dict([pair async for pair in Item.objects.filter(pk__in=keys[: limit + 1]).values_list("pk", "body")])
    return ItemPage([(pk, bodies[pk]) for pk in keys[:limit] if pk in bodies], len(keys) > limit)


def _id(row: tuple[int, str]) -> str:
    uid: str = orjson.loads(row[1])["id"]
    return uid
