"""Tells whether a server elsewhere lives, to those who ask and to those who wait for its tokens."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from time import monotonic
from typing import Any, TypeVar

from responses_app.engine_interface import EngineUnavailable

FRESH_S = 1.0  # Who was heard this recently is alive; nobody wants a health check per request.
WATCH_S = 1.0
# So many bad answers in a row, with not a word in between, and it is given up. A server that ends in peace refuses
# connections too, while it finishes what it is working on.
STRIKES = 2
# One that gives no answer at all may be busy.
HUNG_S = 15.0

Result = TypeVar("Result")


class HealthMonitor:
    """`ask` says how the server is: True, False, or None for no answer in time."""

    def __init__(self, ask: Callable[[], Awaitable[bool | None]]) -> None:
        self._ask = ask
        self._heard = -FRESH_S
        self._waiting: dict[asyncio.Task[Any], bool] = {}  # Whether they were told that it is dead.
        self._asking: asyncio.Task[bool | None] | None = None
        self._watcher: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to watch, until `stop`."""
        if self._watcher is None:
            self._watcher = asyncio.create_task(self._watch(), name="engine pulse")

    async def stop(self) -> None:
        """Watch no longer; whoever still waits is told that the server is gone."""
        self._heard = -FRESH_S
        tasks = [task for task in (self._watcher, self._asking) if task is not None]
        self._watcher = self._asking = None
        for task in tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        self._give_up()

    async def is_healthy(self) -> bool:
        """Whether it was heard just now, or answers. Those who ask at the same time share one question."""
        if monotonic() - self._heard < FRESH_S:
            return True
        if self._asking is None or self._asking.done():
            self._asking = asyncio.ensure_future(self._ask())
        well = await asyncio.shield(self._asking)
        self.record(bool(well))
        return bool(well)

    def record(self, well: bool) -> None:
        """What somebody has just seen of it."""
        self._heard = monotonic() if well else -FRESH_S

    async def run_while_healthy(self, work: Awaitable[Result]) -> Result:
        """The result of waiting for the server. Raises EngineDown if it is found dead meanwhile, however silent its end."""
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a coroutine runs in one
        # What asyncio.timeout does, without what it costs: ten microseconds for every chunk of tokens.
        self._waiting[task], cancelling = False, task.cancelling()
        try:
            result = await work
        except asyncio.CancelledError:
            if self._waiting[task] and task.uncancel() <= cancelling:
                raise EngineUnavailable("the server does not answer any more") from None
            raise
        finally:
            del self._waiting[task]
        self._heard = monotonic()
        return result

    async def _watch(self) -> None:
        """Look every second while somebody waits. A connection that is reset tells sooner; a hung server never resets one."""
        strikes, since = 0, monotonic()
        while True:
            await asyncio.sleep(WATCH_S)
            if not self._waiting or monotonic() - self._heard < WATCH_S:
                strikes, since = 0, monotonic()
                continue
            well = await self._ask()
            if well:
                strikes, since = 0, monotonic()
            elif well is False:
                strikes += 1
            if strikes >= STRIKES or monotonic() - since > HUNG_S:
                self._give_up()

    def _give_up(self) -> None:
        for task, told in list(self._waiting.items()):
            if not told:
                self._waiting[task] = True
                task.cancel()
