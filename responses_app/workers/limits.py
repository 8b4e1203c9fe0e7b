"""Resource limits of a worker process, and errors of jobs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a job: CPU time, clock time, and memory in addition to the memory after imports."""

    cpu_s: int
    wall_s: float
    memory_bytes: int


class WorkerError(Exception):
    """The job failed without a result."""


class LimitExceeded(WorkerError):
    """The job used more CPU time, or more clock time, than allowed. The process was killed."""


class WallTimeExceeded(LimitExceeded):
    """The job took more clock time than allowed, possibly because the machine is busy."""


class WorkerDied(WorkerError):
    """The process ended during the job for an unknown reason. `signal_number` is 0 without a signal."""

    def __init__(self, message: str, signal_number: int = 0) -> None:
        super().__init__(message)
        self.signal_number = signal_number


class WorkerFailed(WorkerError):
    """The process did not start, or the function raised an exception; the message has the traceback."""


class WorkerNotStarted(WorkerFailed):
    """The process could not be created, or ended before the import of the function. A later attempt may succeed."""


class PoolBusy(WorkerError):
    """Too many jobs of the owner wait, or the job has waited too long."""
