"""Whether the database stores events: noted by the log writer, and read by admission, health checks and pages.

A full disk is not an error of a single run: runs wait, and no new runs begin until there is space again.
"""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Callable
from typing import Final

import psycopg

from responses_app.installation.data_dir import data_dir

logger = logging.getLogger("responses.log")

# Seconds without a commit after which the disk counts as full: a short lack of space is not refused.
FULL_AFTER_S: Final = 10.0
# Seconds after the last failure after which commits succeed again, or no run waits for space and the next request tries.
KNOWN_FOR_S: Final = 5.0
# Seconds between two failures of the same loss of the database: an attempt waits for a connection, 20 s by default.
LOST_FOR_S: Final = 60.0
# Seconds between two lines of the log about commits that fail.
LOG_EVERY_S: Final = 10.0
# A Postgres that cannot write its WAL ends. Below this many free bytes on the disk of the data folder that is the reason.
LEAST_FREE_BYTES: Final = 16 * 1024 * 1024


class StorageState:
    """State of the storage of events in this process. `clock` returns seconds that never go back."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.clear()

    def clear(self) -> None:
        """Forget all failures."""
        self._failing_since: float | None = None
        self.last_failure = self._last_line = float("-inf")
        self._has_no_space = False

    @property
    def is_full(self) -> bool:
        """Return whether nothing can be stored for FULL_AFTER_S seconds because the disk is full."""
        now = self._clock()
        return (
            self._failing_since is not None
            and self._has_no_space
            and now - self._failing_since >= FULL_AFTER_S
            and not self._is_over(now)
        )

    @property
    def has_no_space(self) -> bool:
        """Return whether the last commit failed because the disk is full."""
        return self._failing_since is not None and self._has_no_space

    def note_failure(self, error: Exception) -> None:
        """Note a commit that failed and is tried again. Log it, at most once in LOG_EVERY_S seconds."""
        now = self._clock()
        if self._failing_since is None or now - self.last_failure >= (KNOWN_FOR_S if self._has_no_space else LOST_FOR_S):
            self._failing_since = now
        self._has_no_space, self.last_failure = is_disk_full(error), now
        if now - self._last_line >= LOG_EVERY_S:
            self._last_line = now
            reason = "the disk is full" if self._has_no_space else "database lost"
            logger.warning("%s for %.0f s, trying again: %s", reason, now - self._failing_since, error)

    def note_success(self) -> None:
        """Note a commit. On a disk that is almost full small commits may succeed among others that fail."""
        if self._failing_since is not None and self._is_over(self._clock()):
            logger.warning(
                "all events are stored again; commits had failed for %.0f s", self.last_failure - self._failing_since
            )
            self._failing_since = None

    def _is_over(self, now: float) -> bool:
        return now - self.last_failure >= KNOWN_FOR_S


def is_disk_full(error: BaseException | None) -> bool:
    """Return whether the error of a commit comes from a full disk: by its SQLSTATE, or by the space that is left."""
    cause = error
    while cause is not None:
        if isinstance(cause, psycopg.errors.DiskFull):
            return True
        if isinstance(cause, psycopg.Error) and cause.sqlstate is not None:
            return False
        cause = cause.__cause__
    try:
        return shutil.disk_usage(data_dir()).free < LEAST_FREE_BYTES
    except OSError:
        return False


storage_state: Final = StorageState()
