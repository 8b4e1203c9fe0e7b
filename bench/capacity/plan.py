"""Formula of a plan: rates, concurrency, CPU, bytes and connections of a workload, from the measured costs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from bench.capacity.costs import CONNECTIONS_PER_PROCESS, HOT_AFTER_END_S, MAX_LOAD, Costs
from bench.capacity.workload import DAY_S, Workload

GB = 1e9


@dataclass(frozen=True, slots=True)
class CapacityPlan:
    """Plan of a workload with the costs."""

    workload: Workload
    costs: Costs

    def concurrency(self, rate: float) -> float:
        """Responses that run at a time, at `rate` requests per second (Little's law)."""
        return rate * self.workload.mean_seconds

    def events_per_s(self, rate: float) -> float:
        """Events per second at `rate` requests per second."""
        return rate * self.workload.events_per_response

    def web_cores(self, rate: float) -> float:
        """Cores of all web processes, archiving included."""
        per_event = self.costs.web_us_per_event + self.costs.archive_web_us_per_event
        return (self.events_per_s(rate) * per_event + rate * self.costs.web_us_per_response) / 1e6

    def postgres_cores(self, rate: float) -> float:
        """Cores of Postgres, archiving included."""
        per_event = self.costs.postgres_us_per_event + self.costs.archive_postgres_us_per_event
        return self.events_per_s(rate) * per_event / 1e6

    @property
    def processes(self) -> int:
        """Web processes for the busiest hour, each at MAX_LOAD of a core."""
        return max(1, math.ceil(self.web_cores(self.workload.peak_rate) / MAX_LOAD))

    @property
    def connections(self) -> int:
        """Sessions of Postgres."""
        return self.processes * CONNECTIONS_PER_PROCESS

    @property
    def wal_bytes_per_day(self) -> float:
        """WAL of a day, archiving included."""
        per_event = self.costs.wal_bytes_per_event + self.costs.archive_wal_bytes_per_event
        return self.workload.requests_per_day * self.workload.events_per_response * per_event

    @property
    def kept_bytes_per_day(self) -> float:
        """Bytes that a day adds to the tables when the logs are archived."""
        per_response = self.workload.events_per_response * self.costs.archived_bytes_per_event + self.costs.bytes_per_response
        return self.workload.requests_per_day * per_response

    @property
    def hot_bytes(self) -> float:
        """Bytes of the table of events in the busiest hour: responses that run, or are not archived yet."""
        seconds = self.workload.mean_seconds / 2 + HOT_AFTER_END_S
        return self.events_per_s(self.workload.peak_rate) * seconds * self.costs.hot_bytes_per_event

    def rows(self) -> Iterator[tuple[str, str]]:
        """Yield the rows of the plan's table."""
        load, peak = self.workload, self.workload.peak_rate
        yield "requests/s, mean and busiest hour", f"{load.mean_rate:,.1f}, {peak:,.1f}"
        yield (
            "responses at a time, mean and busiest hour",
            f"{self.concurrency(load.mean_rate):,.0f}, {self.concurrency(peak):,.0f}",
        )
        yield "events/s, mean and busiest hour", f"{self.events_per_s(load.mean_rate):,.0f}, {self.events_per_s(peak):,.0f}"
        yield "output tokens/s, busiest hour", f"{peak * load.mean_tokens:,.0f}"
        yield "cores of web processes, busiest hour", f"{self.web_cores(peak):,.2f}"
        yield f"web processes at {MAX_LOAD:.0%} of a core", f"{self.processes:,}"
        yield "sessions of Postgres", f"{self.connections:,}"
        yield "cores of Postgres, busiest hour", f"{self.postgres_cores(peak):,.2f}"
        yield "WAL, GB a day and MB/s in the busiest hour", f"{self.wal_bytes_per_day / GB:,.1f}, {self._wal_mb_per_s():,.2f}"
        yield "table of events, GB", f"{self.hot_bytes / GB:,.2f}"
        yield "kept, GB a day", f"{self.kept_bytes_per_day / GB:,.1f}"
        yield f"kept after {load.keep_days:g} days, GB", f"{self.kept_bytes_per_day * load.keep_days / GB:,.0f}"
        yield (
            "sent to clients, MB/s in the busiest hour",
            f"{self.events_per_s(peak) * self.costs.sent_bytes_per_event / 1e6:,.2f}",
        )

    def _wal_mb_per_s(self) -> float:
        return self.wal_bytes_per_day / DAY_S * self.workload.peak_rate / self.workload.mean_rate / 1e6
