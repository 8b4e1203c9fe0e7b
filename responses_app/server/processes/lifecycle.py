"""Life cycle of a server: start of the engines, listening, and a bounded shutdown that lets responses finish."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import signal
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from types import FrameType
from typing import Any, Protocol

from responses_app.server.http.admission import Gate
from responses_app.server.http.server import Application, DaphneServer
from responses_app.server.postgres.cluster import Postgres
from responses_app.server.postgres.watchdog import watch
from responses_app.wire.transport_limits import TransportLimits

logger = logging.getLogger("responses.serve")

CLOSE_LIMIT = 15.0
# Seconds for the last events to reach clients after the last run.
SETTLE_LIMIT = 2.0
# Seconds for WebSocket clients to answer a close in a fast shutdown.
CLOSING_LIMIT = 0.2


class RunManagerLifecycle(Protocol):
    """Interface of `runs.manager.RunManager` for the life cycle.

    `is_leaving_soon` has `/health/ready` answer 503 while requests are still served.
    """

    is_leaving_soon: bool

    async def start(self) -> object:
        """Start the engines."""

    def stop_draining(self) -> None:
        """Stop waiting for runs."""

    async def drain(self, seconds: float, may_come: Callable[[], bool]) -> None:
        """Wait at most `seconds` for runs to end, and for further requests while `may_come` returns True."""

    async def close(self) -> None:
        """Stop the manager and the engines."""


class ServerLifecycle:
    """Life cycle of a server process: `start`, then `listen` until a signal. `code` is the exit code.

    After SIGTERM the server listens for `drain_delay` seconds more, in which load balancers see that the process is not ready.
    SIGUSR1, from a supervisor, makes the process not ready alone.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        hub: RunManagerLifecycle,
        drain: float,
        postgres: Postgres | None = None,
        drain_delay: float = 0,
    ) -> None:
        self.loop, self.hub, self.drain, self.postgres = loop, hub, drain, postgres
        self.drain_delay = drain_delay
        self.code = 0
        self._delayed: asyncio.TimerHandle | None = None
        self._server: DaphneServer | None = None
        self._starting: asyncio.Task[object] | None = None
        self._draining: asyncio.Task[None] | None = None
        self._reviving: asyncio.Task[None] | None = None
        self._opening: asyncio.Task[None] | None = None
        self._early = False
        self._hurry = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        # Not handlers of the loop: uvloop drops signals that come while the loop does not run, as during imports.
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):
            signal.signal(number, self._on_signal)

    def start(self) -> bool:
        """Start the engines. Return False after a signal. Raises the manager's exceptions."""
        self._starting = self.loop.create_task(self.hub.start())
        try:
            self.loop.run_until_complete(self._starting)
        except asyncio.CancelledError:
            return False
        finally:
            self._starting = None
        return True

    def listen(
        self,
        application: Application,
        endpoint: str,
        ready: Callable[[], None],
        gate: Gate,
        limits: TransportLimits,
    ) -> str | None:
        """Serve until stopped; `ready` is called when the server listens. Return an error if listening failed, else None."""
        if self._early:
            return None
        self._server = DaphneServer(application, endpoint, lambda: self._soon(ready), gate, limits)
        if self.postgres is not None:
            self._reviving = self._start_task(self._watch(self.postgres))
        self._server.run()
        return self._server.failure

    def open(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run `work`, which makes the models ready, while the server listens; the shutdown cancels it."""
        self._opening = self._start_task(work())

    def fail(self) -> None:
        """Begin the shutdown with the exit code 1."""
        self.code = 1
        self.stop()

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal, also while the loop does not run."""
        del frame
        if self.loop.is_running():
            # The signal may interrupt a request, whose database thread ends with the request.
            self.loop.call_soon_threadsafe(self._receive, number, context=contextvars.Context())
        else:
            self._receive(number)

    def _receive(self, number: int) -> None:
        """Begin the shutdown, after SIGTERM with the delay; any further signal ends the delay."""
        if number == signal.SIGUSR1:
            self.hub.is_leaving_soon = True
        elif number == signal.SIGTERM and self.drain_delay and self._server is not None and not self.hub.is_leaving_soon:
            self.hub.is_leaving_soon = True
            self._server.is_leaving = True
            logger.info("not ready any more; the port closes in %.0f s", self.drain_delay)
            self._delayed = self.loop.call_later(self.drain_delay, self.stop)
        else:
            self.stop()

    def stop(self) -> None:
        """Begin the shutdown; a second call stops waiting for responses."""
        if self._delayed is not None:
            self._delayed.cancel()
        if self._server is None:
            self._early = True
            if self._starting is not None:
                self._starting.cancel()
        elif self._draining is None:
            self._draining = self._start_task(self._wind_down(self._server))
        else:
            self._hurry.set()

    def close(self) -> None:
        """Close the manager, which writes queued events and stops the engines, and cancel remaining tasks."""
        with suppress(TimeoutError):
            self.loop.run_until_complete(asyncio.wait_for(self.hub.close(), CLOSE_LIMIT))
        for task in asyncio.all_tasks(self.loop):
            task.cancel()
        self.loop.run_until_complete(asyncio.sleep(0))

    async def _wind_down(self, server: DaphneServer) -> None:
        server.stop_listening()
        for task in filter(None, (self._reviving, self._opening)):
            if task is not asyncio.current_task():
                task.cancel()
        began = time.monotonic()
        logger.info("stopping; responses that run may take %.0f s more (Ctrl-C again to end them now)", self.drain)
        drain, hurry = self._start_task(self.hub.drain(self.drain, server.may_get_requests)), self._start_task(self._hurried())
        await asyncio.wait({drain, hurry}, return_when=asyncio.FIRST_COMPLETED)
        if self._hurry.is_set():
            self.hub.stop_draining()
        else:
            await server.wait_for_answers(SETTLE_LIMIT)
        server.close_websockets()
        await server.wait_for_answers(CLOSING_LIMIT if self._hurry.is_set() else SETTLE_LIMIT)
        logger.info("drained in %.1f s", time.monotonic() - began)
        server.stop()

    def _soon(self, ready: Callable[[], None]) -> None:
        self.loop.call_soon(ready)

    async def _hurried(self) -> None:
        await self._hurry.wait()

    async def _watch(self, postgres: Postgres) -> None:
        await watch(postgres)
        self.fail()

    def _start_task(self, work: asyncio._CoroutineLike[None]) -> asyncio.Task[None]:
        task = self.loop.create_task(work, context=contextvars.Context())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task
