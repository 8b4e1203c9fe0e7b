"""Time range of the overview page, and its parts: the slots of the time axis."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

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
