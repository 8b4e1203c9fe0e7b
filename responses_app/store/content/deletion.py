"""Deletion of responses in sets. An item stays as long as a later response of the thread or a conversation refers to the item."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Any, Final

from django.db import IntegrityError, connection

from responses_app.models import Response
from responses_app.store.db import durable_transaction

# Two deletions of the same thread at a time would each see the responses of the other, and both would keep the items of these.
# A response that is alone in its thread needs no lock. The number is arbitrary.
THREAD_LOCK: Final = 7306215
# Number of times that a conversation can stop a deletion by an addition.
MAX_CONFLICTS: Final = 3
SHARED_THREADS_SQL: Final = """
SELECT id, hashtext(thread) FROM responses_app_response AS mine WHERE id = ANY(%(keys)s) AND EXISTS (
  SELECT FROM responses_app_response AS other WHERE other.thread = mine.thread AND other.id <> mine.id)
"""
# In the order of the numbers, so that no two transactions wait for each other.
WAIT_FOR_THREADS_SQL: Final = "SELECT pg_advisory_xact_lock(%(lock)s, number) FROM unnest(%(numbers)s::integer[]) AS number"
LOCK_THREADS_SQL: Final = """
SELECT number FROM unnest(%(numbers)s::integer[]) AS number WHERE NOT pg_try_advisory_xact_lock(%(lock)s, number)
"""
# Items that no other response needs: own items, and items of the histories whose response was deleted before. In most threads the
# history of the newest response has all earlier items, so few histories are read. Only responses with a higher key than the owner of an
# item can refer to the item.
UNNEEDED_SQL: Final = """
WITH mine AS MATERIALIZED (
  SELECT id, thread, history FROM responses_app_response WHERE id = ANY(%(keys)s)
), own AS MATERIALIZED (
  SELECT item.id, mine.thread, mine.id AS owner FROM mine JOIN responses_app_item AS item ON item.response_id = mine.id
), earlier AS MATERIALIZED (
  SELECT DISTINCT thread, unnest(history) AS id FROM mine
), referred AS (
  SELECT id, thread, owner FROM own UNION ALL
  SELECT item.id, earlier.thread, 0 FROM earlier JOIN responses_app_item AS item ON item.id = earlier.id WHERE item.response_id IS NULL
), newest AS MATERIALIZED (
  SELECT thread, unnest(history) AS id FROM (SELECT DISTINCT thread FROM mine) AS threads, LATERAL (
    SELECT history FROM responses_app_response AS other WHERE other.thread = threads.thread AND other.id <> ALL(%(keys)s)
    ORDER BY other.id DESC LIMIT 1) AS response
), doubtful AS MATERIALIZED (
  SELECT id, thread, owner FROM referred
  WHERE NOT EXISTS (SELECT FROM newest WHERE newest.thread = referred.thread AND newest.id = referred.id)
  AND NOT EXISTS (SELECT FROM responses_app_conversationitem AS link WHERE link.item_id = referred.id)
), needed AS MATERIALIZED (
  SELECT other.thread, unnest(other.history) AS id FROM (SELECT thread, min(owner) AS owner FROM doubtful GROUP BY thread) AS part
  JOIN responses_app_response AS other ON other.thread = part.thread AND other.id > part.owner AND other.id <> ALL(%(keys)s)
), unneeded AS MATERIALIZED (
  SELECT DISTINCT id FROM doubtful
  WHERE NOT EXISTS (SELECT FROM needed WHERE needed.thread = doubtful.thread AND needed.id = doubtful.id)
)
"""
# Constraints are checked at the commit, so the order of the parts does not matter.
DELETE_ITEMS_SQL: Final = """
WITH images AS (DELETE FROM responses_app_image WHERE item_id = ANY(%(keys)s))
DELETE FROM responses_app_item WHERE id = ANY(%(keys)s)
"""
DELETE_SQL: Final = f"""{UNNEEDED_SQL}
, images AS (DELETE FROM responses_app_image WHERE item_id IN (SELECT id FROM unneeded)
), items AS (DELETE FROM responses_app_item WHERE id IN (SELECT id FROM unneeded)
), kept AS (
  UPDATE responses_app_item SET response_id = NULL WHERE id IN (SELECT id FROM own EXCEPT SELECT id FROM unneeded)
), outputs AS (DELETE FROM responses_app_tooloutput WHERE response_id = ANY(%(keys)s)
), requests AS (DELETE FROM responses_app_storedrequest WHERE response_id = ANY(%(keys)s)
), rounds AS (DELETE FROM responses_app_roundprompt WHERE response_id = ANY(%(keys)s)
), leases AS (DELETE FROM responses_app_lease WHERE response_id = ANY(%(keys)s)
), events AS (DELETE FROM responses_app_event WHERE response_id = ANY(%(keys)s)
), pages AS (DELETE FROM responses_app_logpage WHERE response_id = ANY(%(keys)s) AND %(pages)s)
DELETE FROM responses_app_response WHERE id = ANY(%(keys)s)
"""  # noqa: S608 - a constant


def erase(project: str, uid: str) -> bool:
    """Delete a response with the log. False if not found. Later responses of the thread stay readable and continuable."""
    for _ in range(MAX_CONFLICTS):
        # A conversation may get an item of the response meanwhile. The item stays then.
        with suppress(IntegrityError):
            return _erase(project, uid)
    return _erase(project, uid)


def _erase(project: str, uid: str) -> bool:
    with durable_transaction():
        rows = Response.objects.select_for_update().filter(project=project, uid=uid)
        keys = list(rows.values_list("pk", flat=True))
        return bool(keys) and bool(delete_rows(keys, waits=True))


def delete_rows(keys: Sequence[int], *, waits: bool = False, pages: bool = True) -> Collection[int]:
    """Delete responses with logs and unneeded items, in a transaction that has locked the rows. Return the keys of the deleted responses.

    Without `waits`, responses of a thread in which another transaction deletes are left. Without `pages`, the caller drops the
    partition with the pages of the logs.
    """
    with connection.cursor() as cursor:
        cursor.execute(SHARED_THREADS_SQL, {"keys": list(keys)})
        threads: dict[int, int] = dict(cursor.fetchall())
        values: dict[str, Any] = {"lock": THREAD_LOCK, "numbers": sorted(set(threads.values()))}
        busy = set[int]()
        if threads:
            cursor.execute(WAIT_FOR_THREADS_SQL if waits else LOCK_THREADS_SQL, values)
            busy = set() if waits else {number for (number,) in cursor.fetchall()}
        free = [key for key in keys if threads.get(key) not in busy]
        if free:
            cursor.execute(DELETE_SQL, {"keys": free, "pages": pages})
    return free


def delete_items(keys: Collection[int]) -> None:
    """Delete items with their images. No conversation may have the items."""
    with connection.cursor() as cursor:
        cursor.execute(DELETE_ITEMS_SQL, {"keys": list(keys)})


def orphaned_items(row: Response) -> list[int]:
    """List items that only `row` refers to: own items and items of the history. Return primary keys."""
    with connection.cursor() as cursor:
        cursor.execute(f"{UNNEEDED_SQL} SELECT id FROM unneeded", {"keys": [row.pk]})  # noqa: S608 - constants
        return [key for (key,) in cursor.fetchall()]
