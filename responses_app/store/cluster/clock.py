"""Clock of the database, which the hosts of a database share, whatever their own clocks show."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import Final

from django.db import connection

# A comparison that took longer says nothing: the process was paused, or the database was slow.
MAX_ROUND_TRIP: Final = timedelta(seconds=1)


class SharedClock:
    """Time of the database without a query: that of the last comparison and the seconds since, which no jump of a clock changes.

    Before the first comparison it is the time of this host.
    """

    def __init__(self) -> None:
        self._compared: tuple[datetime, float] | None = None

    def now(self) -> datetime:
        """Return the time of the database."""
        if self._compared is None:
            return datetime.now(UTC)
        time, at = self._compared
        return time + timedelta(seconds=monotonic() - at)

    def note(self, database_time: datetime, before: datetime, after: datetime) -> None:
        """Compare `database_time` with the times of this host `before` and `after` its query."""
        if timedelta(0) <= after - before <= MAX_ROUND_TRIP:
            self._compared = database_time + (after - before) / 2, monotonic()


shared_clock = SharedClock()


def database_time() -> datetime:
    """Ask the database for the present time."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        ((now,),) = cursor.fetchall()
    return datetime.fromtimestamp(now.timestamp(), UTC)
