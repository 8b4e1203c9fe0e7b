"""Pages and batches of rows, ordered by primary key, with a row as the cursor."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from django.db.models import Model, QuerySet

Row = TypeVar("Row", bound=Model)
BATCH: Final = 100


@dataclass(frozen=True, slots=True)
class RowPage(Generic[Row]):
    """Page of rows. `more`: whether more rows follow."""

    rows: Sequence[Row]
    more: bool


def read_page(
    rows: QuerySet[Row],
    *,
    limit: int,
    newest_first: bool,
    after: str | None,
    before: str | None = None,
    id_field: str = "uid",
    cursor_rows: QuerySet[Row] | None = None,
) -> RowPage[Row] | None:
    """Read up to `limit` of `rows`. `after` and `before` are values of `id_field` among `cursor_rows`, or `rows`. None if not found.

    With `before` alone the page has the rows nearest to that row, in the same order as all pages.
    """
    cursor_rows = rows if cursor_rows is None else cursor_rows
    for cursor, is_ascending in ((after, not newest_first), (before, newest_first)):
        if cursor is not None:
            position = cursor_rows.filter(**{id_field: cursor}).values_list("pk", flat=True).first()
            if position is None:
                return None
            rows = rows.filter(pk__gt=position) if is_ascending else rows.filter(pk__lt=position)
    is_backward = before is not None and after is None
    page_rows = list(rows.order_by("-pk" if newest_first != is_backward else "pk")[: limit + 1])
    shown = page_rows[:limit]
    return RowPage(shown[::-1] if is_backward else shown, len(page_rows) > limit)


async def batches(rows: QuerySet[Row]) -> AsyncIterator[Sequence[Row]]:
    """Read all of `rows`, oldest first, up to `BATCH` at a time, so that a download of any length needs little memory."""
    rows = rows.order_by("pk")
    batch = [row async for row in rows[:BATCH]]
    while batch:
        yield batch
        batch = [row async for row in rows.filter(pk__gt=batch[-1].pk)[:BATCH]]
