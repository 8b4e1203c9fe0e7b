"""Orphaned items: without a conversation and without a response, perhaps still needed by the history of a response."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from django.db import connection, transaction
from django.db.models import QuerySet

from responses_app.models import Item
from responses_app.store.content.deletion import delete_items

BATCH = 10_000
# Reads all histories of the project once per batch, because no index maps items to histories.
REFERENCED_SQL = """
SELECT DISTINCT item FROM responses_app_response, unnest(history) AS item
WHERE project = %s AND item IN (SELECT unnest(%s::bigint[]))
"""


def mark(keys: Sequence[int], now: datetime) -> None:
    """Set `orphaned_at` on the orphans among the items."""
    Item.objects.filter(pk__in=keys, response=None, conversation_items=None).update(orphaned_at=now)


def erase(project: str, keys: Sequence[int]) -> int:
    """Delete orphans without a reference in a history of the project. Return the number deleted."""
    with transaction.atomic():
        mine = Item.objects.filter(pk__in=keys, project=project)
        # Locked against a concurrent addition to a conversation.
        locked = set(mine.select_for_update().order_by("pk").values_list("pk", flat=True))
        orphans = list(Item.objects.filter(pk__in=locked, response=None, conversation_items=None).values_list("pk", flat=True))
        unneeded = set(orphans) - referenced(project, orphans)
        delete_items(unneeded)
        # Referenced items are deleted with the last response that needs them (`deletion.delete_rows`). The rest is linked again and stays.
        Item.objects.filter(pk__in=locked - unneeded, orphaned_at__isnull=False).update(orphaned_at=None)
    return len(unneeded)


def referenced(project: str, keys: Sequence[int]) -> set[int]:
    """Find the items referenced in histories of the project."""
    if not keys:
        return set()
    with connection.cursor() as cursor:
        cursor.execute(REFERENCED_SQL, [project, list(keys)])
        return {row[0] for row in cursor.fetchall()}


def orphaned_before(before: datetime) -> QuerySet[Item]:
    """Select items orphaned before the time `before`."""
    return Item.objects.filter(orphaned_at__lt=before)


def prune(before: datetime) -> Iterator[int]:
    """Delete items orphaned before the time `before`, project by project. Yield the size of each batch."""
    while project := orphaned_before(before).order_by("orphaned_at").values_list("project", flat=True).first():
        yield erase(project, list(orphaned_before(before).filter(project=project).values_list("pk", flat=True)[:BATCH]))
