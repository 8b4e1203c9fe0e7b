"""Archiver: archives due logs in batches. One process of all hosts archives at a time: the one that holds a lock of the database.

A process of its own (`responses_app.server.processes.archiver`) holds the lock for as long as it lives. Without such a process the
maintenance of a web process archives, between pauses.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Final

from django.conf import settings
from django.db import DatabaseError, connection

from responses_app.store.log.archive import LOGS_PER_BATCH, archive_each, list_unarchived

# A lock of the session: Postgres frees it when the process or its connection ends. The number is arbitrary.
LOCK: Final = 7306216
# Seconds after which a log that cannot be archived is tried again.
TRY_AGAIN_S: Final = 600.0
# Postgres notices within about 25 seconds that the host of a session has vanished.
KEEPALIVE_SQL: Final = "SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3"


class Archiver:
    """Archiver of this process. Logs that cannot be archived are set aside, so that they stop no others."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._set_aside: dict[int, float] = {}

    def archive_due(self, now: datetime, logs_per_batch: int = LOGS_PER_BATCH) -> Iterator[int]:
        """Archive the logs that ended RESPONSES_SEAL_AFTER before `now`; yield the number of events of each batch."""
        after = settings.RESPONSES_SEAL_AFTER
        if after is None:
            return
        self._set_aside = {key: until for key, until in self._set_aside.items() if until > self._clock()}
        while keys := list_unarchived(now - after, logs_per_batch, self._set_aside):
            counts, failed = archive_each(keys)
            self._set_aside.update(dict.fromkeys(failed, self._clock() + TRY_AGAIN_S))
            yield sum(counts.values())
            # Requests and other processes have locked the rest.
            if not counts and not failed:
                return


@contextmanager
def archiver_lock() -> Iterator[bool]:
    """Take the lock of the archiver for the connection of this thread, without waiting. Yield whether this process may archive."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [LOCK])
        (has_lock,) = cursor.fetchone()
    try:
        yield has_lock
    finally:
        # With the connection the lock is lost too.
        if has_lock:
            with suppress(DatabaseError), connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(%s)", [LOCK])
