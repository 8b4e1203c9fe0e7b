"""Orphans: items that stand in no conversation any more, belong to no response, and may still be needed by the history of one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from django.db import connection, transaction
from django.db.models import QuerySet

from responses_app.models import Item

BATCH = 10_000
# The histories of a project are read once for each batch: no index leads from an item to them.
NEEDED = """
SELECT DISTINCT item FROM responses_app_response, unnest(history) AS item
WHERE project = %s AND item IN (SELECT unnest(%s::bigint[]))
"""


def mark(keys: Sequence[int], now: datetime) -> None:
    """Note since when these items are orphans, those of them that are."""
    Item.objects.filter(pk__in=keys, response=None, conversation_items=None).update(orphaned_at=now)


def erase(project: str, keys: Sequence[int]) -> int:
    """Delete those of the items that are orphans and that no response of their project needs; how many."""
    with transaction.atomic():
        mine = Item.objects.filter(pk__in=keys, project=project)
        # Locked, so that none is put into a conversation meanwhile.
        locked = set(mine.select_for_update().order_by("pk").values_list("pk", flat=True))
        orphans = list(Item.objects.filter(pk__in=locked, response=None, conversation_items=None).values_list("pk", flat=True))
        doomed = set(orphans) - needed(project, orphans)
        Item.objects.filter(pk__in=doomed).delete()
        # What is needed goes with the last response that needs it (store.erase), and what has found a place stays.
        Item.objects.filter(pk__in=locked - doomed, orphaned_at__isnull=False).update(orphaned_at=None)
    return len(doomed)


def needed(project: str, keys: Sequence[int]) -> set[int]:
    """Find those of the items that the history of a response of the project names."""
    if not keys:
        return set()
    with connection.cursor() as cursor:
        cursor.execute(NEEDED, [project, list(keys)])
        return {row[0] for row in cursor.fetchall()}


def due(before: datetime) -> QuerySet[Item]:
    """The items that were orphans before then."""
    return Item.objects.filter(orphaned_at__lt=before)


def prune(before: datetime) -> Iterator[int]:
    """Delete the orphans of before then, project by project; after each batch, how many it was."""
    while project := due(before).order_by("orphaned_at").values_list("project", flat=True).first():
        yield erase(project, list(due(before).filter(project=project).values_list("pk", flat=True)[:BATCH]))
