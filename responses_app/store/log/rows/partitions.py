"""Partitions of the pages of archived logs: ranges of primary keys of responses, each of about a week.

Keys of responses follow time, and a page knows the key of its response: so the key of the partition is in the primary key of the
table. A partition is dropped when no response has a key in its range any more. Pages outside of all ranges are in the partition `rest`,
so that no insert fails where partitions were not made in time.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import NamedTuple

from django.db import OperationalError, connection, transaction
from django.db.backends.utils import CursorWrapper
from django.db.models import Max, Min, Q

from responses_app.models import Response

logger = logging.getLogger("responses.partitions")

TABLE = "responses_app_logpage"
# Responses of a partition: those of a week, rounded up to a multiple of this number. Every query plans with all partitions.
STEP = 100_000
WEEK = timedelta(days=7)
# A partition cannot be made or dropped while another transaction reads the table; the next run of maintenance tries again.
LOCK_TIMEOUT_SQL = "SET LOCAL lock_timeout TO '200ms'"
# One process at a time makes or drops partitions. The number is arbitrary.
LOCK_SQL = "SELECT pg_try_advisory_xact_lock(7306214)"
LIST_SQL = f"""SELECT child.oid::regclass::text, pg_get_expr(child.relpartbound, 0) FROM pg_inherits
JOIN pg_class AS child ON child.oid = inhrelid WHERE inhparent = '{TABLE}'::regclass"""  # noqa: S608 - a constant
STRAY_PAGES_SQL = f"""DELETE FROM {TABLE} AS page WHERE response_id >= %(start)s AND response_id < %(end)s
AND NOT EXISTS (SELECT FROM responses_app_response AS response WHERE response.id = page.response_id)"""  # noqa: S608 - a constant
BOUNDS = re.compile(r"FROM \((?:MINVALUE|'?(-?\d+)'?)\) TO \('?(\d+)'?\)")


class Partition(NamedTuple):
    """Partition of pages: responses with keys from `start` to `end`, without `end`."""

    name: str
    start: int
    end: int

    @property
    def responses(self) -> Q:
        """Condition of the responses of the partition."""
        return Q(pk__gte=self.start, pk__lt=self.end)


def list_partitions() -> Sequence[Partition]:
    """List the partitions with a range, oldest first."""
    with connection.cursor() as cursor:
        cursor.execute(LIST_SQL)
        named_bounds = [(name, BOUNDS.search(bounds)) for name, bounds in cursor.fetchall()]
    ranges = [Partition(name, int(bounds[1] or 0), int(bounds[2])) for name, bounds in named_bounds if bounds]
    return sorted(ranges, key=lambda partition: partition.end)


def list_due(before: datetime) -> Sequence[Partition]:
    """List the partitions that get no more responses, and whose responses all ended before `before`."""
    return [partition for partition in _complete() if _is_due(partition, before)]


def drop_empty() -> int:
    """Drop the partitions that get no more responses and have none left. Return their number."""
    empty = [partition for partition in _complete() if not Response.objects.filter(partition.responses).exists()]
    return sum(_with_lock(partial(_drop, partition.name)) for partition in empty)


def delete_stray_pages(partition: Partition) -> None:
    """Delete the pages of a partition whose responses are deleted."""
    with connection.cursor() as cursor:
        cursor.execute(STRAY_PAGES_SQL, partition._asdict())


def make_next(now: datetime) -> bool:
    """Make the next partition as soon as less than a week is left of the last partition. Return whether made."""
    size = _keys_of_a_week(now)
    return _has_little_room(size) and _with_lock(partial(_make, size))


def _complete() -> Sequence[Partition]:
    """List the partitions whose keys have all been given to responses."""
    last_key = _last_key()
    return [partition for partition in list_partitions() if partition.end <= last_key]


def _is_due(partition: Partition, before: datetime) -> bool:
    rows = Response.objects.filter(partition.responses)
    # The newest response alone shows that most partitions are not due.
    newest = rows.order_by("-pk").values_list("ended_at", flat=True).first()
    if newest is None or newest >= before:
        return False
    return not rows.filter(Q(ended_at=None) | Q(ended_at__gte=before)).exists()


def _with_lock(change: Callable[[CursorWrapper], bool]) -> bool:
    """Apply `change` in a transaction. False if another process changes partitions, or if the table is in use."""
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(LOCK_TIMEOUT_SQL)
            cursor.execute(LOCK_SQL)
            return bool(cursor.fetchone()[0]) and change(cursor)
    except OperationalError as error:
        logger.info("partitions stay as they are: %s", error)
        return False


def _make(size: int, cursor: CursorWrapper) -> bool:
    # A different process may have made the partition before this process got the lock.
    if not _has_little_room(size):
        return False
    # Rows of the partition `rest` cannot move: the range begins behind these rows.
    start = max(_end(), _max_key_of_rest(cursor) + 1)
    name = f"{TABLE}_from_{start}"
    # Attaching a table locks less than making a partition in its place.
    cursor.execute(f"CREATE TABLE {name} (LIKE {TABLE} INCLUDING STORAGE)")
    cursor.execute(f"ALTER TABLE {TABLE} ATTACH PARTITION {name} FOR VALUES FROM ({start}) TO ({start + size})")
    return True


def _drop(name: str, cursor: CursorWrapper) -> bool:
    # A different process may have dropped the partition before this process got the lock.
    cursor.execute(f"DROP TABLE IF EXISTS {name}")
    return True


def _has_little_room(size: int) -> bool:
    return _end() - _last_key() < size


def _end() -> int:
    return max((partition.end for partition in list_partitions()), default=0)


def _last_key() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_get_serial_sequence('responses_app_response', 'id')")
        (sequence,) = cursor.fetchone()
        cursor.execute(f"SELECT last_value FROM {sequence}")  # noqa: S608 - a name that Postgres has quoted
        return int(cursor.fetchone()[0])


def _max_key_of_rest(cursor: CursorWrapper) -> int:
    cursor.execute(f"SELECT COALESCE(max(response_id), -1) FROM {TABLE}_rest")  # noqa: S608 - a constant
    return int(cursor.fetchone()[0])


def _keys_of_a_week(now: datetime) -> int:
    """Return the number of responses of the last seven days, rounded up to a multiple of STEP."""
    keys = Response.objects.filter(created_at__gte=now - WEEK).aggregate(first=Min("pk"), last=Max("pk"))
    number = 0 if keys["first"] is None else keys["last"] - keys["first"]
    return (number // STEP + 1) * STEP
