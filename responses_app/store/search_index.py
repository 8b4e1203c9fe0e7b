"""Full-text index of items: the list of new entries is merged into the index by maintenance, before a commit has to."""

from __future__ import annotations

from django.db import connection

# Takes 10 to 50 ms for the items of some seconds. A commit that finds the list full merges it first, and all streams wait.
MERGE_SQL = "SELECT gin_clean_pending_list('item_search'::regclass)"


def merge_new_entries() -> int:
    """Merge the new entries into the index. Return the number of pages that the list had."""
    with connection.cursor() as cursor:
        cursor.execute(MERGE_SQL)
        return int(cursor.fetchone()[0])
