"""Ends of requests that have no log: their reservations are settled, and their usage is noted, in batches."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import orjson
from django.db import transaction

from responses_app.models import UsageRecord
from responses_app.store.db import execute_prepared
from responses_app.store.limits import counters
from responses_app.store.limits.counters import LimitCharge
from responses_app.store.limits.usage import Spent

# A process without a heartbeat for so long opens no response: an opening is given up earlier.
SILENT_S: Final = 60.0
CLOSE_SQL: Final = "DELETE FROM responses_app_openreservation WHERE id = ANY($1::bigint[]) RETURNING id"
CLOSE_DEAD_SQL: Final = """
DELETE FROM responses_app_openreservation WHERE NOT EXISTS (
  SELECT FROM responses_app_worker worker WHERE worker.uid = responses_app_openreservation.worker
  AND worker.heartbeat_at > clock_timestamp() - make_interval(secs => $1::float8)
) RETURNING differences::text
"""


@dataclass(frozen=True, slots=True)
class OpenCharges:
    """Charges of a request, with the primary key of the `OpenReservation`."""

    charges: Sequence[LimitCharge] = ()
    row: int | None = None


@dataclass(frozen=True, slots=True)
class UnstoredEnd:
    """End of a request without a log. `row` is None for a request that was refused before anything ran."""

    reserved: OpenCharges
    spent: Spent
    row: UsageRecord | None


class UnstoredEnds:
    """Ends in the memory of this process that are not written yet."""

    def __init__(self) -> None:
        self._ends: list[UnstoredEnd] = []
        # The event loop adds ends, and several threads write them.
        self._lock = threading.Lock()

    def __bool__(self) -> bool:
        """Return whether there are ends to write."""
        return bool(self._ends)

    def add(self, end: UnstoredEnd) -> None:
        """Add an end."""
        if end.reserved.charges or end.row is not None:
            with self._lock:
                self._ends.append(end)

    def write(self) -> None:
        """Write all ends in a transaction. Raises DatabaseError; then the next call writes these too."""
        with self._lock:
            ends, self._ends = self._ends, []
        if not ends:
            return
        try:
            with transaction.atomic():
                UsageRecord.objects.bulk_create([end.row for end in ends if end.row is not None])
                _settle(ends)
        except BaseException:
            with self._lock:
                self._ends = [*ends, *self._ends]
            raise


pending = UnstoredEnds()


def _settle(ends: Sequence[UnstoredEnd]) -> None:
    """Settle the reservations of requests. A reservation without a row was released, so all of the usage is added."""
    rows = [end.reserved.row for end in ends if end.reserved.row is not None]
    # Reservations that count still; those of requests with a log have no row.
    open_rows = {None, *(row for (row,) in execute_prepared(CLOSE_SQL, [rows]))} if rows else {None}
    charged = [
        (charge if end.reserved.row in open_rows else replace(charge, reserved=0), end.spent.amounts)
        for end in ends
        for charge in end.reserved.charges
    ]
    if charged:
        counters.settle(counters.dump_differences(charged))


def release_abandoned() -> int:
    """Give back the reservations of processes that have died, whose requests have no log yet. Return the number of requests."""
    with transaction.atomic():
        rows = [orjson.loads(differences) for (differences,) in execute_prepared(CLOSE_DEAD_SQL, [SILENT_S])]
        if rows:
            counters.settle(orjson.dumps([difference for differences in rows for difference in differences]))
    return len(rows)
