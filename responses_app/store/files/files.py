"""Rows of uploaded files; deletion of rows together with the bytes in the storage."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import datetime, timedelta

from asgiref.sync import sync_to_async
from django.db import transaction
from django.db.models import Q, QuerySet

from responses_app.models import File
from responses_app.store.files import quota
from responses_app.store.files.pending import delete_unreferenced, deletion
from responses_app.store.paging import RowPage, read_page

BATCH = 100


def create(row: File) -> None:
    """Insert the row of a file whose bytes are in the storage. Raises FileQuotaExceeded."""
    with transaction.atomic():
        quota.add_file(row.project, row.storage_name, row.bytes)
        row.save(force_insert=True)


def unexpired(now: datetime) -> QuerySet[File]:
    """Return the files that have not expired."""
    return File.objects.filter(Q(expires_at=None) | Q(expires_at__gt=now))


def visible(project: str, now: datetime) -> QuerySet[File]:
    """Return the files of a project that have not expired."""
    return unexpired(now).filter(project=project)


async def find(project: str, uid: str, now: datetime) -> File | None:
    """Return the file `uid` of the project; None if unknown or expired."""
    return await visible(project, now).filter(uid=uid).afirst()


async def find_all(project: str, uids: Collection[str], now: datetime) -> dict[str, File]:
    """Return the files of the project among `uids` that have not expired, by id."""
    return {row.uid: row async for row in visible(project, now).filter(uid__in=uids)}


async def page(
    project: str,
    now: datetime,
    *,
    limit: int,
    after: str | None,
    before: str | None = None,
    purpose: str | None = None,
    newest_first: bool = True,
) -> RowPage[File] | None:
    """Read up to `limit` files after the file `after`, or before the file `before`. None if that file is not found."""
    rows = visible(project, now)
    shown = rows if purpose is None else rows.filter(purpose=purpose)
    return await sync_to_async(read_page)(
        shown, limit=limit, newest_first=newest_first, after=after, before=before, cursor_rows=rows
    )


def delete(row: File) -> None:
    """Delete a file: the row, then the bytes unless a container has them. A stop in between leaves a mark for the clean-up."""
    with deletion(row.storage_name):
        row.delete()
        delete_unreferenced(row.storage_name)


def delete_all(rows: QuerySet[File]) -> Iterator[int]:
    """Delete the files of `rows`. Yield the number of each batch."""
    while batch := list(rows.order_by("pk")[:BATCH]):
        for row in batch:
            delete(row)
        yield len(batch)


def overdue(now: datetime, keep: timedelta | None) -> QuerySet[File]:
    """Return the files that have expired, and those uploaded longer ago than `keep`."""
    expired = Q(expires_at__lte=now)
    return File.objects.filter(expired if keep is None else expired | Q(created_at__lt=now - keep))
