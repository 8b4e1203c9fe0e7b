"""A pool of compiler processes with a cache: one job of a project at a time, projects in turn.

Threads of the pool wait for the processes, so that no event loop does, and any event loop can use it.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import threading
from collections import OrderedDict, deque
from concurrent.futures import Future
from dataclasses import dataclass, field

from responses_app.compiler.jobs import Job, Result
from responses_app.compiler.process import CannotStart, Died, WorkerProcess

logger = logging.getLogger("responses.compiler")

PROCESSES = 2
MOST_WAITING = 64
WAIT_LIMIT_S = 60.0
MOST_CACHED_BYTES = 32 << 20
MOST_CACHED = 4096
# A process may have been killed from outside; the second death is the fault of the job.
ATTEMPTS = 2
CLOSE_LIMIT_S = 5.0
STOPPED = Result(refusal="the server is stopping", is_final=False)


class Refused(ValueError):
    """The compiler refuses this input; the message is the reason."""


class Overloaded(RuntimeError):
    """Nothing was compiled, as too much waits; the message says so."""


@dataclass(eq=False, slots=True)
class _Entry:
    """A job that waits or runs, and how many requests wait for its result."""

    job: Job
    key: bytes
    project: str
    waiting: int = 0
    future: Future[Result] = field(default_factory=Future)


class Pool:
    """Compiles in child processes. They start with the first job and end with `close`; the next job starts them again."""

    def __init__(self, processes: int = PROCESSES) -> None:
        self._processes = processes
        self._changed = threading.Condition()
        self._queues: OrderedDict[str, deque[_Entry]] = OrderedDict()
        self._busy: set[str] = set()
        self._entries: dict[bytes, _Entry] = {}
        self._cache: OrderedDict[bytes, Result] = OrderedDict()
        self._cached_bytes = 0
        self._threads: list[_Thread] = []
        self._generation = 0

    async def run(self, project: str, job: Job) -> str:
        """The EBNF of a conversion, an empty text for a compilation. Raises Refused, Overloaded."""
        found = self._enter(project, job)
        result = found if isinstance(found, Result) else await self._wait(found)
        if result.refusal is None:
            return result.text
        if result.is_final:
            raise Refused(result.refusal)
        raise Overloaded(f"A schema or grammar was not compiled: {result.refusal}. Try again in a moment.")

    def close(self) -> None:
        """End all processes. What is under way gets no result."""
        with self._changed:
            self._generation += 1
            threads, self._threads = self._threads, []
            for entry in [one for queue in self._queues.values() for one in queue]:
                self._settle(entry, STOPPED)
            self._queues.clear()
            self._changed.notify_all()
        for thread in threads:
            thread.stop()
        for thread in threads:
            thread.join(CLOSE_LIMIT_S)

    def pids(self) -> list[int]:
        """The process ids of the workers that run."""
        return [process.pid for thread in self._threads if (process := thread.process) is not None]

    def _enter(self, project: str, job: Job) -> Result | _Entry:
        """The cached result, or the entry of the job in the queue. Raises Overloaded."""
        key = job.key
        with self._changed:
            if key in self._cache:
                self._cache.move_to_end(key)
                return self._cache[key]
            entry = self._entries.get(key)
            if entry is None:
                queue = self._queues.setdefault(project, deque())
                if len(queue) >= MOST_WAITING:
                    raise Overloaded(f"{MOST_WAITING} schemas and grammars of this project wait to be compiled. Try again in a moment.")
                entry = self._entries[key] = _Entry(job, key, project)
                queue.append(entry)
                self._start_threads()
                self._changed.notify()
            entry.waiting += 1
            return entry

    async def _wait(self, entry: _Entry) -> Result:
        try:
            async with asyncio.timeout(WAIT_LIMIT_S):
                return await asyncio.shield(asyncio.wrap_future(entry.future))
        except TimeoutError:
            raise Overloaded("Compiling schemas and grammars takes too long at the moment. Try again in a moment.") from None
        finally:
            with self._changed:
                entry.waiting -= 1

    def _start_threads(self) -> None:
        while len(self._threads) < self._processes:
            thread = _Thread(self, self._generation)
            self._threads.append(thread)
            thread.start()

    def take(self, generation: int) -> _Entry | None:
        """Wait for the next job of the next project that has none under way; None after `close`."""
        with self._changed:
            while self._generation == generation:
                entry = self._next()
                if entry is not None:
                    return entry
                self._changed.wait()
        return None

    def finish(self, entry: _Entry, result: Result) -> None:
        """Give the result to all who wait for it, and remember it."""
        with self._changed:
            self._busy.discard(entry.project)
            self._settle(entry, result)
            if result.is_final:
                self._remember(entry.key, result)
            self._changed.notify_all()

    def _next(self) -> _Entry | None:
        for project in [one for one in self._queues if one not in self._busy]:
            queue = self._queues.pop(project)
            while queue:
                entry = queue.popleft()
                if not entry.waiting:  # All its clients have gone.
                    self._settle(entry, Result(refusal="nobody waits for it", is_final=False))
                    continue
                if queue:
                    self._queues[project] = queue  # At the end: the other projects come first.
                self._busy.add(project)
                return entry
        return None

    def _settle(self, entry: _Entry, result: Result) -> None:
        self._entries.pop(entry.key, None)
        entry.future.set_result(result)

    def _remember(self, key: bytes, result: Result) -> None:
        self._cache[key] = result
        self._cached_bytes += result.size
        while self._cached_bytes > MOST_CACHED_BYTES or len(self._cache) > MOST_CACHED:
            _, forgotten = self._cache.popitem(last=False)
            self._cached_bytes -= forgotten.size


class _Thread(threading.Thread):
    """The owner of one worker process: it starts the process, gives it jobs, and replaces it after a limit or a death."""

    def __init__(self, pool: Pool, generation: int) -> None:
        super().__init__(name="compiler", daemon=True)
        self._pool, self._generation = pool, generation
        self.process: WorkerProcess | None = None
        self._stopping = False

    def stop(self) -> None:
        """Give up what is under way."""
        self._stopping = True
        process = self.process
        if process is not None:
            process.kill()

    def run(self) -> None:
        """Work until the pool is closed."""
        try:
            while (entry := self._pool.take(self._generation)) is not None:
                self._pool.finish(entry, self._result(entry.job))
        finally:
            self._end()

    def _result(self, job: Job) -> Result:
        for _ in range(ATTEMPTS):
            try:
                if self.process is None or not self.process.is_alive():
                    self._end()
                    self.process = WorkerProcess()
                if self._stopping:
                    break
                result = self.process.do(job)
            except Died as death:
                if self._stopping:
                    break
                logger.error("a compiler process was ended by signal %d", death.number)
                self._end()
            except Exception as error:  # The thread has to go on, and those who wait have to get an answer.
                logger.exception("a compiler process cannot be used")
                self._end()
                reason = "the compiler process does not start" if isinstance(error, CannotStart) else "the compiler has failed"
                return Result(refusal=reason, is_final=False)
            else:
                if not result.is_final:
                    self._end()
                return result
        if self._stopping:
            return STOPPED
        return Result(refusal="the compiler ends whenever it is asked to compile this")

    def _end(self) -> None:
        process, self.process = self.process, None
        if process is not None:
            process.end()


shared = Pool()
atexit.register(shared.close)
