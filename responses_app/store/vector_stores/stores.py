"""Queries of vector stores: create, find, list, count the files, delete, and expiry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import connection, transaction
from django.db.models import Count, Q, Sum
from django.utils import timezone

from responses_app.models import StoreFileStatus, VectorStore, VectorStoreFile
from responses_app.store.paging import RowPage, read_page

# The time of the last use is stored at most so often, so that searches do not wait for each other. Seconds.
TOUCH_EVERY_S = 60.0


@dataclass(frozen=True, slots=True)
class FileCounts:
    """Number of files by status, and bytes of all chunks."""

    by_status: Mapping[str, int]
    usage_bytes: int = 0

    @property
    def total(self) -> int:
        """Number of all files."""
        return sum(self.by_status.values())

    def body(self) -> dict[str, int]:
        """Return the `file_counts` of the API."""
        return {**{status: self.by_status.get(status, 0) for status in StoreFileStatus.values}, "total": self.total}


class TooManyStores(Exception):
    """The project has as many vector stores as the server allows."""


def create(row: VectorStore, max_stores: int) -> None:
    """Insert a vector store. Raises TooManyStores if the project has `max_stores` vector stores already."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            # So that two requests at the same time cannot exceed the limit.
            cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"vector stores {row.project}"])
        if VectorStore.objects.filter(project=row.project).count() >= max_stores:
            raise TooManyStores
        row.save(force_insert=True)


def find(project: str, uid: str) -> VectorStore | None:
    """Find a vector store by id; None if not found."""
    return VectorStore.objects.filter(project=project, uid=uid).first()


def find_many(project: str, uids: Sequence[str]) -> dict[str, VectorStore]:
    """Find vector stores by id."""
    return {row.uid: row for row in VectorStore.objects.filter(project=project, uid__in=uids)}


def page(
    project: str, *, limit: int, newest_first: bool, after: str | None, before: str | None = None
) -> RowPage[VectorStore] | None:
    """Read up to `limit` vector stores of a project. None if `after` or `before` is not found."""
    rows = VectorStore.objects.filter(project=project)
    return read_page(rows, limit=limit, newest_first=newest_first, after=after, before=before)


def count_files(stores: Sequence[VectorStore]) -> dict[int, FileCounts]:
    """Count the files of each store by status, with one query. Keys are primary keys."""
    counts: dict[int, dict[str, int]] = {store.pk: {} for store in stores}
    usage = dict.fromkeys(counts, 0)
    groups = VectorStoreFile.objects.filter(store__in=counts).order_by()
    for pk, status, number, total in groups.values_list("store_id", "status").annotate(Count("pk"), Sum("usage_bytes")):
        counts[pk][status] = number
        usage[pk] += total
    return {pk: FileCounts(counts[pk], usage[pk]) for pk in counts}


def expires_at(store: VectorStore) -> datetime | None:
    """Return the time at which the store expires; None for never."""
    if store.expires_after_days is None:
        return None
    return store.last_active_at + timedelta(days=store.expires_after_days)


def is_expired(store: VectorStore, now: datetime) -> bool:
    """Return whether the store has not been used for the days after which it expires."""
    end = expires_at(store)
    return end is not None and end <= now


def expiry_problem(store: VectorStore, now: datetime) -> str | None:
    """Return why the store can no longer be used, or None."""
    if not is_expired(store, now):
        return None
    return (
        f"The vector store '{store.uid}' has expired, because it was not used for {store.expires_after_days} days. "
        "Create a vector store with the same files, or change 'expires_after'."
    )


def touch(stores: Sequence[VectorStore], now: datetime) -> None:
    """Store `now` as the time of the last use."""
    old = Q(last_active_at__lt=now - timedelta(seconds=TOUCH_EVERY_S))
    VectorStore.objects.filter(old, pk__in=[store.pk for store in stores]).update(last_active_at=now)


def delete(row: VectorStore) -> None:
    """Delete a vector store with the batches and chunks. The files stay."""
    row.delete()


def update(row: VectorStore, fields: Sequence[str]) -> bool:
    """Save `fields` of `row`, and the time of the last use. False if the store was deleted."""
    row.last_active_at = timezone.now()
    values = {name: getattr(row, name) for name in (*fields, "last_active_at")}
    return VectorStore.objects.filter(pk=row.pk).update(**values) > 0


def status_of(store: VectorStore, counts: FileCounts, now: datetime) -> str:
    """Return the `status` of the API: `expired`, `in_progress` while files are ingested, or `completed`."""
    if is_expired(store, now):
        return "expired"
    return "in_progress" if counts.by_status.get(StoreFileStatus.IN_PROGRESS) else "completed"
