"""Sessions of the tests' database that wait for a lock.

Tests of other workers have their databases in the same Postgres. `pg_locks` alone would count their sessions, and end them.
"""

from __future__ import annotations

from typing import Final

# Not by `pg_stat_activity`, which stays as it was at its first use in a transaction. A lock on a transaction names no database, but
# its session has other locks that do.
FROM_WAITING: Final = """FROM pg_locks WHERE NOT granted AND pid IN (
  SELECT pid FROM pg_locks JOIN pg_database ON pg_database.oid = database WHERE datname = current_database()
)"""


FROM_WAITING_FOR_EVENTS: Final = f"{FROM_WAITING} AND relation = 'responses_app_event'::regclass"
