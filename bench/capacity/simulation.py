"""Simulation of a day: arrivals, slots of engines, a queue, refusals at the limits, and the failure of a host.

A response holds a slot from its prompt to its last token. Without a free slot it waits, first come, first served. Requests beyond
the limit of all processes are refused. When a host fails, its responses go to the head of the queue after the lease timeout, and
continue where they were.
"""

from __future__ import annotations

import heapq
import random
from collections import deque
from dataclasses import dataclass, field

from bench.capacity.workload import DAY_S, FRAME_EVENTS, Workload

# Seconds without a heartbeat after which a process counts as dead, and the pause of the claims (store/cluster/leases.py).
TAKEOVER_S = 5.5


@dataclass(frozen=True, slots=True)
class Cluster:
    """Hosts with `processes` web processes and `slots` sequences of engines each. One host fails at `fails_at` for `fails_for` seconds."""

    hosts: int = 2
    processes: int = 2
    slots: int = 128
    max_concurrent: int = 512
    fails_at: float | None = None
    fails_for: float = 600.0

    @property
    def limit(self) -> int:
        """Requests that all processes together work on at a time."""
        return self.hosts * self.processes * self.max_concurrent


@dataclass(slots=True)
class SimulationOutcome:
    """Result of a day. `running` and `events` have a mean for each second, spread over the seconds of a response."""

    running: list[float] = field(default_factory=lambda: [0.0] * DAY_S)
    events: list[float] = field(default_factory=lambda: [0.0] * DAY_S)
    waits: list[float] = field(default_factory=list)
    responses: int = 0
    refused: int = 0
    taken_over: int = 0
    max_running: int = 0
    max_queue: int = 0

    def wait(self, share: float) -> float:
        """Return a quantile of the waiting times in seconds."""
        ordered = sorted(self.waits)
        return ordered[int(share * (len(ordered) - 1))] if ordered else 0.0


@dataclass(frozen=True, slots=True)
class _SimulatedJob:
    """Response or its rest: time of arrival, seconds in a slot, events; `is_rest` after a failure."""

    arrived: float
    seconds: float
    events: float
    is_rest: bool = False


class Simulation:
    """Simulation of a day with a seed."""

    def __init__(self, workload: Workload, cluster: Cluster, seed: int = 1) -> None:
        self._workload, self._cluster = workload, cluster
        self._chance = random.Random(seed)
        self._free = [cluster.slots] * cluster.hosts
        # Running responses by their end: time, number, host, job.
        self._running: list[tuple[float, int, int, _SimulatedJob]] = []
        self._number = 0
        self._queue: deque[_SimulatedJob] = deque()
        # Changes of the cluster in order of time: the failed host, the takeover of its responses, its return.
        self._changes: deque[tuple[float, str]] = deque()
        self._lost: list[_SimulatedJob] = []
        self.outcome = SimulationOutcome()
        if cluster.fails_at is not None:
            times = {"fail": 0.0, "take over": TAKEOVER_S, "return": cluster.fails_for}
            self._changes.extend((cluster.fails_at + after, name) for name, after in times.items())

    def run(self) -> SimulationOutcome:
        """Run the day."""
        for at, tokens in self._workload.arrivals(self._chance):
            self._advance(at)
            self._arrive(at, tokens)
        self._advance(DAY_S * 10.0)
        _accumulate(self.outcome.running)
        _accumulate(self.outcome.events)
        return self.outcome

    def _advance(self, now: float) -> None:
        """Let responses end and the cluster change up to the time `now`."""
        while True:
            end = self._running[0][0] if self._running else float("inf")
            change = self._changes[0][0] if self._changes else float("inf")
            if min(end, change) > now:
                return
            if change <= end:
                self._change(*self._changes.popleft())
            else:
                _, _, host, _ = heapq.heappop(self._running)
                self._free[host] += 1
            self._start_waiting(min(end, change))

    def _change(self, now: float, name: str) -> None:
        """Change the last host."""
        if name == "fail":
            self._fail(now)
        elif name == "take over":
            self._queue.extendleft(reversed(self._lost))
            self.outcome.taken_over += len(self._lost)
        else:
            self._free[-1] = self._cluster.slots

    def _fail(self, now: float) -> None:
        last = self._cluster.hosts - 1
        lost = [entry for entry in self._running if entry[2] == last]
        self._running = [entry for entry in self._running if entry[2] != last]
        heapq.heapify(self._running)
        for end, _, _, job in lost:
            remaining_s = end - now
            events = job.events * remaining_s / job.seconds
            self._record(now, remaining_s, events, sign=-1)
            self._lost.append(_SimulatedJob(now, remaining_s + self._workload.first_token_s, events, is_rest=True))
        self._free[last] = 0

    def _arrive(self, now: float, tokens: int) -> None:
        if len(self._running) + len(self._queue) >= self._cluster.limit:
            self.outcome.refused += 1
            return
        self.outcome.responses += 1
        load = self._workload
        seconds = load.first_token_s + tokens / load.tokens_per_s
        self._queue.append(_SimulatedJob(now, seconds, FRAME_EVENTS + tokens / load.deltas_per_event))
        self._start_waiting(now)
        self.outcome.max_queue = max(self.outcome.max_queue, len(self._queue))

    def _start_waiting(self, now: float) -> None:
        while self._queue and max(self._free) > 0:
            job = self._queue.popleft()
            host = self._free.index(max(self._free))
            self._free[host] -= 1
            self._number += 1
            heapq.heappush(self._running, (now + job.seconds, self._number, host, job))
            self._record(now, job.seconds, job.events)
            self.outcome.max_running = max(self.outcome.max_running, len(self._running))
            if not job.is_rest:
                self.outcome.waits.append(now - job.arrived)

    def _record(self, at: float, seconds: float, events: float, sign: int = 1) -> None:
        """Response or the remainder of a lost one: arrival, seconds in a slot, events; `is_rest` after a failure."""
        start, end = min(int(at), DAY_S - 1), min(int(at + seconds) + 1, DAY_S)
        length = max(end - start, 1)
        for values, share in ((self.outcome.running, seconds / length), (self.outcome.events, events / length)):
            values[start] += sign * share
            if end < DAY_S:
                values[end] -= sign * share


def _accumulate(changes: list[float]) -> None:
    """Turn changes from second to second into values."""
    total = 0.0
    for second, change in enumerate(changes):
        total += change
        changes[second] = total
