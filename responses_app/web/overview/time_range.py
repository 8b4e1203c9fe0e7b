"""Time range of the overview page, its parts, and its newest responses."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.db.models import QuerySet

from responses_app.models import Response
from responses_app.web.responses.filters import WRITE_DELAY, first_key_from

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# The last slot, in which responses begin, is counted in so many parts: then a new response makes few of the others count again.
LAST_PARTS = 8


@dataclass(frozen=True, slots=True)
class TimeRange:
    """Time range from `since` in slots, which begin at multiples of `step` in UTC. The first slot begins with the range."""

    name: str
    since: datetime
    step: timedelta
    slots: int

    @classmethod
    def until(cls, end: datetime, name: str, step: timedelta, steps: int) -> TimeRange:
        """Return the range that begins `steps` before `end`."""
        since = end - steps * step
        return cls(name, since, step, -((since - EPOCH) // step) - (EPOCH - end) // step)

    @property
    def axis_start(self) -> datetime:
        """Start of the time axis: the multiple of `step` at or before `since`."""
        return self.since - (self.since - EPOCH) % self.step

    def start_of(self, slot: int) -> datetime:
        """Return the time at which a slot begins."""
        return max(self.since, self.axis_start + slot * self.step)

    @property
    def part_bounds(self) -> list[datetime]:
        """Starts of the parts that are counted, and the end of the last: the slots, of which the last is divided."""
        starts = [self.axis_start + slot * self.step for slot in range(self.slots)]
        return [*starts, *(starts[-1] + part * self.step / LAST_PARTS for part in range(1, LAST_PARTS + 1))]


def newest_rows(rows: QuerySet[Response], since: datetime, limit: int) -> QuerySet[Response]:
    """Return the newest `limit` of the rows, which begin at `since`, in any order.

    If there cannot be more, the query has no limit: Postgres reads the rows in a third less time where it may choose the order.
    """
    first = first_key_from(since - WRITE_DELAY)
    last = Response.objects.order_by("-pk").values_list("pk", flat=True).first()
    if first is not None and last is not None and last - first < limit:
        return rows.filter(pk__gte=first).order_by()
    return rows.order_by("-pk")[:limit]
