"""Supervised process: a child process that is restarted after an exit."""

from __future__ import annotations

import asyncio
import logging
import signal
import time
from collections.abc import Callable

from responses_app.server.supervision.child import ChildProcess
from responses_app.server.supervision.process_tree import describe_exit
from responses_app.utils.backoff import Backoff

logger = logging.getLogger("responses.serve")

# Pauses between a death and the next start. A process that was ready for STEADY_S starts with the first pause again.
PAUSES_S = (0.1, 0.5, 1.0, 2.0, 5.0)
STEADY_S = 5.0
RENEW_LIMIT = 120.0


class SupervisedProcess:
    """Supervised process: `spawn` starts a process, `farewell` is the stop signal, `grace` a limit in seconds."""

    def __init__(self, title: str, spawn: Callable[[], ChildProcess], farewell: signal.Signals, grace: float) -> None:
        self.title, self._spawn, self._farewell, self._grace = title, spawn, farewell, grace
        self._children: set[ChildProcess] = set()
        self.child = self._new()

    async def wait_ready(self, restarts: int = 0) -> bool:
        """Return True when the process is ready, False if it ends before. A killed one is started again, up to `restarts` times."""
        for pause in PAUSES_S[:restarts]:
            if await asyncio.shield(self.child.ready):
                return True
            code = await asyncio.shield(self.child.ended)
            if code != -signal.SIGKILL:
                return False
            logger.error("%s %s before it was ready; it is started again", self.title, describe_exit(code))
            await asyncio.sleep(pause)
            self.child = self._new()
        return await asyncio.shield(self.child.ready)

    async def supervise(self) -> None:
        """Restart the process after each exit, until cancelled."""
        backoff = Backoff(PAUSES_S)
        while True:
            child = self.child
            code = await asyncio.shield(child.ended)
            if child is not self.child:
                continue  # It was renewed.
            if _steady(child):
                backoff.reset()
            pause = backoff.next_pause_s()
            logger.error("%s (process %d) %s; it is started again in %.1f s", self.title, child.pid, describe_exit(code), pause)
            await asyncio.sleep(pause)
            if child is self.child:
                # Otherwise the ended process is tried again after the next pause.
                self.child = self._try_new() or child

    async def replace(self) -> bool:
        """Start a new process, and stop the old process when the new process is ready. Return False if the new process fails."""
        fresh, old = self._try_new(), self.child
        if fresh is None:
            return False
        await asyncio.wait({fresh.ready}, timeout=RENEW_LIMIT)
        if not fresh.ready.done() or not fresh.ready.result():
            await fresh.stop(self._farewell, self._grace)
            return False
        self.child = fresh
        await old.stop(self._farewell, self._grace)
        return True

    def send(self, number: signal.Signals) -> None:
        """Send a signal to all processes."""
        for child in self._children:
            child.send(number)

    async def stop_all(self) -> None:
        """Stop all processes in bounded time."""
        await asyncio.gather(*(child.stop(self._farewell, self._grace) for child in list(self._children)))

    def _try_new(self) -> ChildProcess | None:
        """Start a process. Return None if the machine has no memory or no descriptors for one."""
        try:
            return self._new()
        except OSError as error:
            logger.error("%s cannot be started: %s", self.title, error)
            return None

    def _new(self) -> ChildProcess:
        child = self._spawn()
        self._children.add(child)
        child.ended.add_done_callback(lambda _: self._children.discard(child))
        return child


def _steady(child: ChildProcess) -> bool:
    return child.ready_at is not None and time.monotonic() - child.ready_at > STEADY_S
