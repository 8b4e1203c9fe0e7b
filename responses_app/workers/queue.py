"""Fair queue of jobs: owners take turns, with a limit on running jobs per owner."""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict, deque
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from responses_app.workers.process import WorkerProcess


@dataclass(slots=True, eq=False)
class Job:
    """A call of the function. `process` is set while the job runs, `cancelled` when the result is not needed any more."""

    owner: str
    payload: bytes
    cpu_s: int
    result: Future[bytes] = field(default_factory=Future)
    process: WorkerProcess | None = None
    cancelled: threading.Event = field(default_factory=threading.Event)


class FairQueue:
    """Waiting jobs by owner, and the number of running jobs of each owner. Not thread-safe."""

    def __init__(self, per_owner: int) -> None:
        self._per_owner = per_owner
        self._waiting: OrderedDict[str, deque[Job]] = OrderedDict()
        self._running: Counter[str] = Counter()

    def __len__(self) -> int:
        """Return the number of all waiting jobs."""
        return sum(map(len, self._waiting.values()))

    def count(self, owner: str) -> int:
        """Return the number of waiting jobs of an owner."""
        return len(self._waiting.get(owner, ()))

    def add(self, job: Job) -> None:
        """Append a job to the queue of the owner."""
        self._waiting.setdefault(job.owner, deque()).append(job)

    def take(self) -> Job | None:
        """Remove the next job allowed to run and count the job as running; None if no job may run."""
        owner = next((owner for owner in self._waiting if self._running[owner] < self._per_owner), None)
        if owner is None:
            return None
        jobs = self._waiting.pop(owner)
        job = jobs.popleft()
        if jobs:
            # Behind all other owners.
            self._waiting[owner] = jobs
        self._running[owner] += 1
        return job

    def remove(self, job: Job) -> bool:
        """Remove a waiting job; return False if the job does not wait."""
        jobs = self._waiting.get(job.owner)
        if jobs is None or job not in jobs:
            return False
        jobs.remove(job)
        if not jobs:
            del self._waiting[job.owner]
        return True

    def finish(self, job: Job) -> None:
        """Stop counting a job as running."""
        self._running[job.owner] -= 1
        if not self._running[job.owner]:
            del self._running[job.owner]
