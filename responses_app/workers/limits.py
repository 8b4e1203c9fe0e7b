"""Resource limits of a worker process, and the errors of its jobs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one job: CPU time, clock time, and memory beyond what the process has after its imports."""

    cpu_s: int
    wall_s: float
    memory_bytes: int


class WorkerError(Exception):
    """A job has no result."""


class LimitExceeded(WorkerError):
    """The job used more CPU time, or more clock time, than its limits allow. Its process was killed."""


class WallTimeExceeded(LimitExceeded):
    """The job took more clock time than its limits allow, which may be the fault of a busy machine."""


class WorkerDied(WorkerError):
    """The process ended during the job, and no limit explains why. `signal_number` is 0 where it was no signal."""

    def __init__(self, message: str, signal_number: int = 0) -> None:
        super().__init__(message)
        self.signal_number = signal_number


class WorkerFailed(WorkerError):
    """The process did not start, or the function raised an exception; the message has the traceback."""


class PoolBusy(WorkerError):
    """Too many jobs of the same owner wait, or the job has waited too long."""
