"""Ends of requests that have no log: their reservations are settled, and their usage is noted, in batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db import transaction

from responses_app.models import UsageRecord
from responses_app.store.limits import counters
from responses_app.store.limits.counters import LimitCharge
from responses_app.store.limits.usage import Spent


@dataclass(frozen=True, slots=True)
class UnstoredEnd:
    """End of a request without a log. `row` is None for a request that was refused before anything ran."""

    charges: Sequence[LimitCharge]
    spent: Spent
    row: UsageRecord | None


class UnstoredEnds:
    """Ends in the memory of this process that are not written yet."""

    def __init__(self) -> None:
        self._ends: list[UnstoredEnd] = []

    def add(self, end: UnstoredEnd) -> None:
        """Add an end."""
        if end.charges or end.row is not None:
            self._ends.append(end)

    def write(self) -> None:
        """Write all ends in a transaction. Raises DatabaseError; then the next call writes these too."""
        ends, self._ends = self._ends, []
        if not ends:
            return
        try:
            with transaction.atomic():
                UsageRecord.objects.bulk_create([end.row for end in ends if end.row is not None])
                if charged := [(charge, end.spent.amounts) for end in ends for charge in end.charges]:
                    counters.settle(counters.dump_differences(charged))
        except BaseException:
            self._ends = [*ends, *self._ends]
            raise


pending = UnstoredEnds()
