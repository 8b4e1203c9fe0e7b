"""Orphaned items: without a conversation and without a response, perhaps still needed by the history of a response."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime

from django.db import connection, transaction
from django.db.models import QuerySet

from responses_app.models import Item
from responses_app.store.content.deletion import delete_items

BATCH = 10_000
MAX_ITEMS = 500
# Reads all histories of the project once per batch, because no index maps items to histories.
REFERENCED_SQL = """
SELECT DISTINCT item FROM responses_app_response, unnest(history) AS item
WHERE project = %s AND item IN (SELECT unnest(%s::bigint[]))
"""
# Items of the history of the newest response are deleted with the last response that needs these, so they get no mark: a mark writes all
# entries of the item's indexes again, among them those of the search. The newest response is locked against a deletion meanwhile.
UNLINK_SQL = """
WITH newest AS MATERIALIZED (
  SELECT history FROM responses_app_response WHERE conversation_id = %(conversation)s ORDER BY id DESC LIMIT 1 FOR KEY SHARE
), needed AS MATERIALIZED (
  SELECT unnest(history) AS id FROM newest
), links AS (
  DELETE FROM responses_app_conversationitem WHERE conversation_id = %(conversation)s RETURNING item_id
)
UPDATE responses_app_item AS item SET orphaned_at = %(now)s FROM links
WHERE item.id = links.item_id AND item.response_id IS NULL AND NOT EXISTS (SELECT FROM needed WHERE needed.id = item.id)
AND NOT EXISTS (
  SELECT FROM responses_app_conversationitem AS other
  WHERE other.item_id = item.id AND other.conversation_id <> %(conversation)s)
"""


def unlink(conversation: int, now: datetime) -> None:
    """Take all items out of a conversation, and set `orphaned_at` on items without a response."""
    with connection.cursor() as cursor:
        cursor.execute(UNLINK_SQL, {"conversation": conversation, "now": now})


def mark(keys: Sequence[int], now: datetime) -> None:
    """Set `orphaned_at` on the orphans among the items."""
    Item.objects.filter(pk__in=keys, response=None, conversation_items=None).update(orphaned_at=now)


def erase(project: str, keys: Sequence[int], *, waits: bool = False) -> Iterator[int]:
    """Delete orphans without a reference in a history of the project, in small transactions. Yield the number deleted by each.

    Locked items are left, unless `waits`.
    """
    unlinked = Item.objects.filter(pk__in=keys, project=project, response=None, conversation_items=None)
    marks = dict(unlinked.values_list("pk", "orphaned_at"))
    needed = referenced(project, list(marks))
    for start in range(0, len(keys), MAX_ITEMS):
        with transaction.atomic():
            yield _erase_unneeded(
                Item.objects.filter(pk__in=keys[start : start + MAX_ITEMS], project=project), marks, needed, waits
            )


@transaction.atomic
def _erase_unneeded(rows: QuerySet[Item], marks: Mapping[int, datetime | None], needed: Collection[int], waits: bool) -> int:
    # Locked against a concurrent addition to a conversation.
    locked = dict(rows.select_for_update(skip_locked=not waits).order_by("pk").values_list("pk", "orphaned_at"))
    orphans = set(Item.objects.filter(pk__in=locked, response=None, conversation_items=None).values_list("pk", flat=True))
    # Another mark: the item was in a conversation meanwhile, and perhaps became part of a history there. The next run decides.
    marked_later = {key for key in orphans if key not in marks or marks[key] != locked[key]}
    unneeded = orphans - marked_later - set(needed)
    delete_items(unneeded)
    # Referenced items are deleted with the last response that needs them (`deletion.delete_rows`). The rest is linked again and stays.
    kept = set(locked) - unneeded - marked_later
    Item.objects.filter(pk__in=kept, orphaned_at__isnull=False).update(orphaned_at=None)
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


def prune(before: datetime, only: str = "") -> Iterator[int]:
    """Delete items orphaned before the time `before`, project by project or in `only`. Yield the size of each batch."""
    for project in {only} if only else set(orphaned_before(before).values_list("project", flat=True)):
        due, last = orphaned_before(before).filter(project=project).order_by("pk"), 0
        while keys := list(due.filter(pk__gt=last).values_list("pk", flat=True)[:BATCH]):
            yield from erase(project, keys)
            last = keys[-1]
