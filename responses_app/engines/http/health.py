"""Health monitor of a remote engine: answers health checks and interrupts requests to a dead server."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from time import monotonic
from typing import Any, TypeVar

from responses_app.engine_interface import EngineUnavailable

logger = logging.getLogger(__name__)

FRESH_S = 1.0  # A server that responded this recently counts as healthy, without a health check per request.
WATCH_S = 1.0
# The server counts as dead after so many failed health checks in a row without any response in between. A server that shuts
# down gracefully refuses connections too, while it finishes its requests.
MAX_FAILURES = 2
# A server that does not answer health checks at all may be busy; after this time it counts as dead.
HUNG_TIMEOUT_S = 15.0

AWAY = "the server does not answer any more"

Result = TypeVar("Result")


class FailureDetector:
    """Decides whether a server is dead: `max_failures` failed health checks in a row, or no answer for `hung_timeout_s`."""

    def __init__(self, max_failures: int, hung_timeout_s: float, *, clock: Callable[[], float] = monotonic) -> None:
        self._max_failures, self._hung_timeout_s, self._clock = max_failures, hung_timeout_s, clock
        self._failures, self._responded_s = 0, clock()

    def record(self, healthy: bool | None) -> None:
        """Record a health check: passed, failed, or None for no answer in time."""
        if healthy:
            self._failures, self._responded_s = 0, self._clock()
        elif healthy is False:
            self._failures += 1

    @property
    def is_dead(self) -> bool:
        """Check whether too many checks failed, or no answer came for too long."""
        return self._failures >= self._max_failures or self._clock() - self._responded_s > self._hung_timeout_s


class HealthMonitor:
    """Health monitor. `check` returns True (healthy), False (unhealthy), or None (no answer in time).

    `observe` is called every WATCH_S while tasks wait.
    """

    def __init__(
        self,
        check: Callable[[], Awaitable[bool | None]],
        observe: Callable[[], None] = lambda: None,
        *,
        clock: Callable[[], float] = monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._observe = observe
        self._check, self._clock, self._sleep = check, clock, sleep
        self._last_response_s = -FRESH_S
        self._waiting: dict[asyncio.Task[Any], str] = {}  # The reason, once the task was interrupted.
        self._running_check: asyncio.Task[bool | None] | None = None
        self._watcher: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start the periodic health check."""
        if self._watcher is None:
            self._watcher = asyncio.create_task(self._watch(), name="engine health")

    async def stop(self) -> None:
        """Stop the periodic health check and interrupt all waiting tasks with EngineUnavailable."""
        self._last_response_s = -FRESH_S
        tasks = [task for task in (self._watcher, self._running_check) if task is not None]
        self._watcher = self._running_check = None
        for task in tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        self.interrupt(self._waiting)

    async def is_healthy(self) -> bool:
        """Return True if the server responded recently or passes a health check. Concurrent callers share the same check."""
        if self._clock() - self._last_response_s < FRESH_S:
            return True
        if self._running_check is None or self._running_check.done():
            self._running_check = asyncio.ensure_future(self._check_server())
        healthy = await asyncio.shield(self._running_check)
        self.record(bool(healthy))
        return bool(healthy)

    def record(self, healthy: bool) -> None:
        """Record an observation of the server made elsewhere."""
        self._last_response_s = self._clock() if healthy else -FRESH_S

    async def run_while_healthy(self, work: Awaitable[Result]) -> Result:
        """Return the result of `work`. Raises EngineUnavailable if the server is found dead meanwhile."""
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a coroutine runs in one
        # Same technique as asyncio.timeout, which costs ten microseconds more per chunk of tokens.
        self._waiting[task], cancelling = "", task.cancelling()
        try:
            result = await work
        except asyncio.CancelledError:
            if (reason := self._waiting[task]) and task.uncancel() <= cancelling:
                raise EngineUnavailable(reason) from None
            raise
        finally:
            del self._waiting[task]
        self._last_response_s = self._clock()
        return result

    async def _watch(self) -> None:
        """Check the server every WATCH_S while tasks wait: a hung server never resets connections."""
        detector = FailureDetector(MAX_FAILURES, HUNG_TIMEOUT_S, clock=self._clock)
        while True:
            await self._sleep(WATCH_S)
            is_observed = bool(self._waiting) and self._clock() - self._last_response_s >= WATCH_S
            detector.record(await self._check_server() if is_observed else True)
            if detector.is_dead:
                self.interrupt(self._waiting)
            elif self._waiting:
                self._observe()

    async def _check_server(self) -> bool | None:
        """Check the server. An unexpected error is a failed check: it must not end the checks."""
        try:
            return await self._check()
        except Exception:
            logger.exception("the health check of an engine has failed")
            return False

    def interrupt(self, tasks: Collection[asyncio.Task[Any]], reason: str = AWAY) -> None:
        """Interrupt those of `tasks` that wait, with EngineUnavailable."""
        for task in list(tasks):
            if self._waiting.get(task) == "":
                self._waiting[task] = reason
                task.cancel()
