"""Reads from a replica of the database: a router of Django, and whether the replica has everything that is committed.

The database `replica` of `settings.DATABASES` is a standby of Postgres. Only what runs within `reading()` reads it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from django.db import DEFAULT_DB_ALIAS, DatabaseError, InterfaceError, connections
from django.db.backends.base.base import BaseDatabaseWrapper

logger = logging.getLogger("responses.replica")

REPLICA: Final = "replica"
# A replica that is later than this is not waited for.
MAX_WAIT_S: Final = 0.25
POLL_S: Final = 0.01
# A replica that failed is not asked for so long.
PAUSE_S: Final = 30.0
FAILURES: Final = (DatabaseError, InterfaceError)
# What is on the primary's disk: the commits of pages wait for it.
PRIMARY_SQL: Final = "SELECT pg_current_wal_flush_lsn()::text"
REPLICA_SQL: Final = "SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn"

_is_reading: ContextVar[bool] = ContextVar("is_reading", default=False)


class ReplicaRouter:
    """Router of Django: reads within `reading()` go to the replica, everything else to the primary."""

    def db_for_read(self, _model: type[Any], **_hints: Any) -> str:
        """Return the alias for a query."""
        return REPLICA if _is_reading.get() else DEFAULT_DB_ALIAS

    def db_for_write(self, _model: type[Any], **_hints: Any) -> str:
        """Return the primary, also for objects that were read from the replica."""
        return DEFAULT_DB_ALIAS

    def allow_relation(self, _first: Any, _second: Any, **_hints: Any) -> bool:
        """Allow relations: both databases have the same rows."""
        return True

    def allow_migrate(self, db: str, _app_label: str, **_hints: Any) -> bool:
        """Migrate the primary alone."""
        return db != REPLICA


@contextmanager
def reading() -> Iterator[None]:
    """Read from the replica."""
    token = _is_reading.set(True)
    try:
        yield
    finally:
        _is_reading.reset(token)


def read_connection() -> BaseDatabaseWrapper:
    """Return the connection for SQL that only reads."""
    return connections[REPLICA if _is_reading.get() else DEFAULT_DB_ALIAS]


class Replica:
    """State of the replica in this process. `clock` returns seconds, `pause` waits."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, pause: Callable[[float], None] = time.sleep) -> None:
        self._clock, self._pause = clock, pause
        self._next_try = 0.0

    def is_current(self) -> bool:
        """Return True if the replica has every commit on the disk of the primary, after a short wait. False without a replica."""
        if REPLICA not in connections.settings or self._clock() < self._next_try:
            return False
        try:
            with connections[DEFAULT_DB_ALIAS].cursor() as cursor:
                cursor.execute(PRIMARY_SQL)
                (position,) = cursor.fetchone()
            return self._has_reached(position)
        except FAILURES as error:
            self.failed(error)
            return False

    def failed(self, error: Exception) -> None:
        """Take note of a failure: the primary is read for some time."""
        self._next_try = self._clock() + PAUSE_S
        logger.warning("the replica is not read for %d s: %s", PAUSE_S, str(error).strip().partition("\n")[0])

    def _has_reached(self, position: str) -> bool:
        deadline = self._clock() + MAX_WAIT_S
        while True:
            with connections[REPLICA].cursor() as cursor:
                cursor.execute(REPLICA_SQL, [position])
                (is_reached,) = cursor.fetchone()
            if is_reached or self._clock() >= deadline:
                return bool(is_reached)
            self._pause(POLL_S)


replica: Final = Replica()
