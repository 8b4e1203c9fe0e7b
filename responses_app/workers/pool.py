"""Pool of worker processes: started on demand, replaced when a job exceeds a limit, ended when idle."""

from __future__ import annotations

import asyncio
import itertools
import logging
import signal
import subprocess
import threading
import time
from concurrent.futures import InvalidStateError
from contextlib import suppress

from responses_app.workers.limits import (
    LimitExceeded,
    Limits,
    PoolBusy,
    WorkerDied,
    WorkerError,
    WorkerFailed,
    WorkerNotStarted,
)
from responses_app.workers.process import WorkerProcess, WrapCommand
from responses_app.workers.queue import FairQueue, Job

logger = logging.getLogger("responses.workers")

IDLE_S = 300.0
# A job whose process was killed from outside gets one more attempt.
MAX_ATTEMPTS = 2
# Pauses before further attempts if a process does not start, for example because the machine is short of memory.
START_PAUSES_S = (0.1, 0.5, 2.0)


class Pool:
    """Calls `target` (`package.module:function`, bytes to bytes) in up to `size` processes, from any thread or event loop.

    Owners take turns. Each owner has at most `per_owner` running and `max_waiting` waiting jobs. No job waits longer than
    `wait_s`. Each process has a thread of its own, because the kernel ends a process with the thread that started it
    (PR_SET_PDEATHSIG). `wrap_command` changes the command that starts a process.
    """

    def __init__(
        self,
        target: str,
        limits: Limits,
        *,
        size: int,
        per_owner: int = 1,
        max_waiting: int = 1000,
        wait_s: float = 60.0,
        wrap_command: WrapCommand | None = None,
    ) -> None:
        self.target, self.limits, self._wrap_command = target, limits, wrap_command
        self._size, self._max_waiting, self._wait_s = size, max_waiting, wait_s
        self._queue = FairQueue(per_owner)
        self._changed = threading.Condition()
        self._threads = self._idle = 0

    async def run(self, owner: str, payload: bytes, *, cpu_s: int | None = None) -> bytes:
        """Run a job and return the result. Cancelling the caller stops the job. Raises WorkerError."""
        job = self._submit(owner, payload, cpu_s)
        try:
            async with asyncio.timeout(self._wait_s + self.limits.wall_s * MAX_ATTEMPTS):
                return await asyncio.wrap_future(job.result)
        except TimeoutError:
            raise PoolBusy(f"no process was free for {self._wait_s:g} seconds") from None
        finally:
            self._cancel(job)

    def call(self, owner: str, payload: bytes, *, cpu_s: int | None = None) -> bytes:
        """Run a job from a thread and block until the result. Raises WorkerError."""
        job = self._submit(owner, payload, cpu_s)
        try:
            return job.result.result(self._wait_s + self.limits.wall_s * MAX_ATTEMPTS)
        except TimeoutError:
            raise PoolBusy(f"no process was free for {self._wait_s:g} seconds") from None
        finally:
            self._cancel(job)

    def _submit(self, owner: str, payload: bytes, cpu_s: int | None) -> Job:
        job = Job(owner, payload, cpu_s or self.limits.cpu_s)
        with self._changed:
            if self._queue.count(owner) >= self._max_waiting:
                raise PoolBusy(f"{self._max_waiting} other jobs wait already")
            self._queue.add(job)
            if self._threads < self._size and len(self._queue) > self._idle:
                self._threads += 1
                threading.Thread(target=self._serve, name=f"worker {self.target}", daemon=True).start()
            self._changed.notify()
        return job

    def _cancel(self, job: Job) -> None:
        """Stop a waiting or running job. Finished jobs stay unchanged."""
        with self._changed:
            job.cancelled.set()
            if self._queue.remove(job):
                job.result.cancel()
            elif job.process is not None:
                job.process.kill()

    def _serve(self) -> None:
        """Run jobs in turn, in the same process as long as possible. Target of the threads."""
        process: WorkerProcess | None = None
        while (job := self._next()) is not None:
            try:
                process = self._run_job(job, process)
            finally:
                with self._changed:
                    self._queue.finish(job)
                    self._changed.notify()
        _end(process)

    def _next(self) -> Job | None:
        """Return the next job; None after IDLE_S without a job, then the thread must end."""
        deadline = time.monotonic() + IDLE_S
        with self._changed:
            self._idle += 1
            while (job := self._queue.take()) is None and (left := deadline - time.monotonic()) > 0:
                self._changed.wait(left)
            self._idle -= 1
            self._threads -= job is None
            return job

    def _run_job(self, job: Job, process: WorkerProcess | None) -> WorkerProcess | None:
        """Run the job and set the result. Return the process for the next job, None if the process has ended."""
        for attempt in itertools.count():
            try:
                process = process or WorkerProcess(self.target, self.limits, self._wrap_command)
                self._call_process(job, process)
            except (LimitExceeded, WorkerDied, WorkerFailed) as error:
                process = _usable(process)
                pause_s = _retry_pause_s(error, attempt)
                if pause_s is None or job.cancelled.wait(pause_s):
                    self._fail(job, error)
                    break
            except Exception as error:
                # It must not end the thread, which the pool would count for ever.
                _end(process)
                process = None
                self._fail(job, WorkerFailed(f"A worker process cannot be used: {error!r}"))
                break
            else:
                break
        return _usable(process)

    def _call_process(self, job: Job, process: WorkerProcess) -> None:
        with self._changed:
            if job.cancelled.is_set():
                return
            job.process = process
        try:
            process.start()
            reply = process.call(job.payload, job.cpu_s)
        finally:
            with self._changed:
                job.process = None
        with suppress(InvalidStateError):
            job.result.set_result(reply)

    def _fail(self, job: Job, error: WorkerError) -> None:
        if job.cancelled.is_set():
            logger.debug("%s: a cancelled job was stopped: %s", self.target, error)
        elif isinstance(error, WorkerFailed):
            logger.error("%s: %s", self.target, error)
        else:
            logger.warning("%s: a job was stopped: %s", self.target, error)
        with suppress(InvalidStateError):
            job.result.set_exception(error)


def _retry_pause_s(error: WorkerError, attempt: int) -> float | None:
    """Return the pause before the attempt after `attempt`; None if the job fails with `error`."""
    if isinstance(error, WorkerNotStarted):
        return START_PAUSES_S[attempt] if attempt < len(START_PAUSES_S) else None
    return 0.0 if _is_killed(error) and attempt + 1 < MAX_ATTEMPTS else None


def _is_killed(error: WorkerError) -> bool:
    """Return True if the process was killed from outside, so a second attempt may succeed."""
    return isinstance(error, WorkerDied) and error.signal_number in (0, signal.SIGKILL, signal.SIGTERM)


def _usable(process: WorkerProcess | None) -> WorkerProcess | None:
    """Return `process` if the next job can use the process, else end the process and return None."""
    if process is not None and not process.is_usable():
        _end(process)
        return None
    return process


def _end(process: WorkerProcess | None) -> None:
    if process is not None:
        process.kill()
        with suppress(subprocess.TimeoutExpired):
            process.reap()
