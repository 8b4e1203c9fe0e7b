"""Compiler: runs jobs in child processes and caches results and rejections."""

from __future__ import annotations

import asyncio
import contextvars
import json
from collections import OrderedDict
from dataclasses import dataclass

from responses_app.compiler.jobs import CONVERSIONS, CompileJob, Result
from responses_app.workers.limits import LimitExceeded, Limits, PoolBusy, WallTimeExceeded, WorkerDied, WorkerFailed
from responses_app.workers.pool import Pool

PROCESSES = 2
CONVERSION_CPU_S = 2
# On a slow and busy processor the largest allowed schema takes seven seconds.
COMPILATION_CPU_S = 12
# Clock time may be much longer than CPU time, because the machine has other work.
WALL_S = 30.0
MEMORY_BYTES = 1 << 30
MAX_WAITING = 64
MAX_CACHED = 4096
MAX_CACHED_BYTES = 32 << 20


class Rejected(ValueError):
    """The input is rejected; the message is the reason."""


class Overloaded(RuntimeError):
    """The job was not compiled, for reasons unrelated to the input."""


@dataclass(eq=False, slots=True)
class _RunningJob:
    """A job under way, and the number of requests waiting for the result."""

    task: asyncio.Task[Result]
    waiting: int = 0


class Compiler:
    """Compiles in up to two processes: a single job per project at a time, projects in turn.

    Requests for the same text share a job. A job without waiting requests is stopped.
    """

    def __init__(self) -> None:
        limits = Limits(COMPILATION_CPU_S, WALL_S, MEMORY_BYTES)
        self._pool = Pool("responses_app.compiler.worker:compile_json", limits, size=PROCESSES, max_waiting=MAX_WAITING)
        self._cache = _Cache()
        self._running: dict[bytes, _RunningJob] = {}

    async def run(self, project: str, job: CompileJob) -> str:
        """Return the EBNF of a conversion, the structural tag with bounds, or an empty text. Raises Rejected, Overloaded."""
        key = job.key
        result = self._cache.get(key) or await self._wait(project, job, key)
        if result.refusal is not None:
            raise Rejected(result.refusal)
        return result.text

    async def _wait(self, project: str, job: CompileJob, key: bytes) -> Result:
        work = self._running.get(key)
        if work is None or work.task.get_loop() is not asyncio.get_running_loop():
            # An empty context: the task must not inherit the database thread of the request that started it.
            task = asyncio.create_task(self._compile(project, job, key), name="compile", context=contextvars.Context())
            work = self._running[key] = _RunningJob(task)
        work.waiting += 1
        try:
            return await asyncio.shield(work.task)
        finally:
            work.waiting -= 1
            if not work.waiting:
                work.task.cancel()
                if self._running.get(key) is work:
                    del self._running[key]

    async def _compile(self, project: str, job: CompileJob, key: bytes) -> Result:
        payload = json.dumps({"kind": job.kind, "text": job.text}).encode()
        cpu_s = CONVERSION_CPU_S if job.kind in CONVERSIONS else COMPILATION_CPU_S
        try:
            result = Result(**json.loads(await self._pool.run(project, payload, cpu_s=cpu_s)))
        except (PoolBusy, WallTimeExceeded, WorkerFailed) as error:
            raise Overloaded("Too many schemas and grammars are being compiled. Try again in a moment.") from error
        except LimitExceeded as error:
            result = Result(refusal=f"compiling it takes {error}")
        except WorkerDied:
            result = Result(refusal=f"compiling it takes more than {MEMORY_BYTES >> 20} MiB of memory")
        self._cache.add(key, result)
        return result


class _Cache:
    """LRU cache of results, bounded in number and in bytes."""

    def __init__(self) -> None:
        self._results: OrderedDict[bytes, Result] = OrderedDict()
        self._bytes = 0

    def get(self, key: bytes) -> Result | None:
        """Return the result and mark the entry as most recently used."""
        result = self._results.get(key)
        if result is not None:
            self._results.move_to_end(key)
        return result

    def add(self, key: bytes, result: Result) -> None:
        """Add a result; evict the least recently used entries above the limits."""
        replaced = self._results.pop(key, None)
        self._results[key] = result
        self._bytes += result.size - (replaced.size if replaced else 0)
        while self._bytes > MAX_CACHED_BYTES or len(self._results) > MAX_CACHED:
            _, evicted = self._results.popitem(last=False)
            self._bytes -= evicted.size


shared = Compiler()
