"""Queue of appends for a task that commits everything that waits, again and again."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import time
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from responses_app.store.log.records import Append

log = logging.getLogger("responses.log")

# Under load the next commit begins this many times the length of the last one after its start, at most MAX_INTERVAL_S after it:
# a commit costs as much as 30 events. A single append with at most FEW_EVENTS is no load.
INTERVAL_FACTOR, MAX_INTERVAL_S = 3, 0.01
FEW_EVENTS = 8
# Under load the first append that comes to an empty queue waits for so long: the runs that got tokens together with its run follow.
GATHER_S = 0.003

# Returns the append when its commit begins; None if the append is not to be committed by this queue any more.
TakeAppend: TypeAlias = Callable[[], Append | None]
OnDurable: TypeAlias = Callable[[Exception | None], None]
Batch: TypeAlias = list[tuple[Append, OnDurable]]


class DurableCallback:
    """Callback of an append, which is called at most once. An error of the callback is logged: other appends wait for theirs."""

    def __init__(self, on_durable: OnDurable) -> None:
        self._on_durable: OnDurable | None = on_durable

    def __call__(self, error: Exception | None) -> None:
        """Call the callback, unless called before."""
        on_durable, self._on_durable = self._on_durable, None
        if on_durable is not None:
            try:
                on_durable(error)
            except Exception:
                log.exception("the callback of an append has failed")


class CommitQueue:
    """Queue with a task on the event loop of the creator, which calls `commit` with everything that waits."""

    def __init__(self, commit: Callable[[Batch], Awaitable[None]]) -> None:
        self._commit = commit
        self._waiting: list[tuple[TakeAppend, OnDurable]] = []
        self._wake = asyncio.Event()
        self._closing = False
        # An empty context: the task must not inherit the database thread of the request that happens to create the queue.
        self._task = asyncio.get_running_loop().create_task(self._run(), context=contextvars.Context())

    def add(self, take: TakeAppend, on_durable: OnDurable) -> None:
        """Add the append that `take` returns when the commit begins."""
        self._waiting.append((take, DurableCallback(on_durable)))
        self._wake.set()

    async def close(self) -> None:
        """Commit what waits, then stop the task."""
        self._closing = True
        self._wake.set()
        await self._task

    async def _run(self) -> None:
        is_load = False
        while self._waiting or not self._closing:
            await self._wait_for_appends(is_load)
            if batch := self._take_waiting():
                is_load, began = _is_load(batch), time.monotonic()
                await self._commit_or_refuse(batch)
                # The next batch may come much later: free the memory of this batch now.
                batch.clear()
                if is_load and not self._closing:
                    await _sleep_until(began + min(INTERVAL_FACTOR * (time.monotonic() - began), MAX_INTERVAL_S))

    async def _commit_or_refuse(self, batch: Batch) -> None:
        """Commit; an error that `commit` did not expect refuses the batch. Without this task all later appends would wait for ever."""
        try:
            await self._commit(batch)
        except Exception as error:
            log.exception("appends cannot be written")
            for _, on_durable in batch:
                on_durable(error)

    async def _wait_for_appends(self, is_load: bool) -> None:
        if not self._wake.is_set():
            await self._wake.wait()
            if is_load and not self._closing:
                await asyncio.sleep(GATHER_S)
        self._wake.clear()

    def _take_waiting(self) -> Batch:
        """Take the appends that wait; an append that cannot be taken is refused."""
        waiting, self._waiting = self._waiting, []
        batch: Batch = []
        for take, on_durable in waiting:
            try:
                append = take()
            except Exception as error:
                log.exception("append cannot be written")
                on_durable(error)
            else:
                if append is not None:
                    batch.append((append, on_durable))
        return batch


def _is_load(batch: Batch) -> bool:
    """Return whether the next commit should wait for more appends: for those of other runs, or for those of a fast stream."""
    first = batch[0][0]
    return len(batch) > 1 or (len(first.frames) > FEW_EVENTS and not first.needs_transaction)


async def _sleep_until(until: float) -> None:
    wait_s = until - time.monotonic()
    if wait_s > 0:
        await asyncio.sleep(wait_s)
