"""Following the log of a response of another process: NOTIFY wakes the follower, which polls without NOTIFY."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import aclosing, suppress
from typing import Any
from uuid import UUID

from asgiref.sync import sync_to_async
from django.db import DatabaseError

from responses_app.models import Response
from responses_app.runs.execute.broadcast import FrameBatches
from responses_app.runs.execute.run import Run
from responses_app.store.cluster.notify import Notifier
from responses_app.store.db import check_connection
from responses_app.store.log import reader
from responses_app.store.log.writer import MAX_RETRY_AWAY_S
from responses_app.store.repeats import lock_number

# Seconds between polls with a connection for NOTIFY, and without.
POLL_CONNECTED_S, POLL_DISCONNECTED_S = 1.0, 0.2
# A follower repeats its registration after RENEW_S; the owner drops the registration after FORGET_S.
RENEW_S, FORGET_S = 4.0, 12.0
# Seconds that a follower waits for a database that is down; runs wait as long.
LOST_LIMIT = MAX_RETRY_AWAY_S


class LogFollower:
    """Followers and notifications of the process `worker`.

    `work` is called when there may be a lease to claim, `cancel` with the primary key of a response to be cancelled, and `repeat`
    with that of a response whose request was sent again.
    """

    def __init__(
        self, worker: UUID, work: Callable[[], None], cancel: Callable[[int], None], repeat: Callable[[int], None]
    ) -> None:
        self._work, self._cancel, self._repeat = work, cancel, repeat
        self._followers: dict[int, set[asyncio.Event]] = {}
        self._followed: dict[int, float] = {}
        self._notifier = Notifier(self._on_notification, lock_number(worker))

    def notify_events(self, run: Run) -> None:
        """Notify the followers of a run of this process in other processes about more events, if there are followers."""
        pk = run.publisher.pk if self._followed else None
        if pk is None or pk not in self._followed:
            return
        if self._followed[pk] < time.monotonic():
            del self._followed[pk]
        else:
            self._notifier.notify("log", pk)

    def notify_work(self) -> None:
        """Notify all processes that there is a lease to claim."""
        self._notifier.notify("work")

    def notify_cancel(self, pk: int) -> None:
        """Notify the process that runs the response `pk` to cancel it."""
        self._notifier.notify("cancel", pk)

    def notify_repeat(self, pk: int) -> None:
        """Notify the process that runs the response `pk` that the request was sent again."""
        self._notifier.notify("repeat", pk)

    async def follow(self, pk: int, after: int = -1, pause: float = 10.0) -> FrameBatches:
        """Yield batches of the frames with numbers above `after`, up to the terminal frame; an empty batch after `pause` silent seconds.

        A deleted log has ended.
        Raises DatabaseError when the database has been away for LOST_LIMIT seconds.
        """
        async with aclosing(self._pages(pk, after)) as pages:
            async for batch in with_pauses(pages, pause):
                yield batch

    async def _pages(self, pk: int, after: int) -> FrameBatches:
        news = asyncio.Event()
        self._followers.setdefault(pk, set()).add(news)
        renewed = 0.0
        read, ended = time.monotonic(), False
        try:
            while True:
                news.clear()
                try:
                    # Before the log is read: a response that has ended by now has its terminal event in the log.
                    ended = not await Response.objects.filter(pk=pk, ended_at=None).aexists()
                    async for page in reader.stored_pages(pk, after):
                        after = page[-1].number
                        yield page
                    read = time.monotonic()
                except DatabaseError:
                    ended = False
                    if time.monotonic() - read > LOST_LIMIT:
                        raise
                    await sync_to_async(check_connection)()
                if ended:
                    return
                if time.monotonic() - renewed > RENEW_S:
                    renewed = time.monotonic()
                    self._notifier.notify("watch", pk)
                await self._news(news)
        finally:
            self._forget(pk, news)

    async def close(self) -> None:
        """Close the connection for NOTIFY."""
        await self._notifier.close()

    async def _news(self, news: asyncio.Event) -> None:
        limit = POLL_CONNECTED_S if self._notifier.connected else POLL_DISCONNECTED_S
        with suppress(TimeoutError):
            await asyncio.wait_for(news.wait(), limit)

    def _on_notification(self, word: str, numbers: list[int]) -> None:
        if word == "work":
            self._work()
        for pk in numbers:
            if word == "log":
                for news in self._followers.get(pk, ()):
                    news.set()
            elif word == "watch":
                self._followed[pk] = time.monotonic() + FORGET_S
            elif word == "cancel":
                self._cancel(pk)
            elif word == "repeat":
                self._repeat(pk)

    def _forget(self, pk: int, news: asyncio.Event) -> None:
        followers = self._followers.get(pk, set())
        followers.discard(news)
        if not followers:
            self._followers.pop(pk, None)


async def with_pauses(batches: FrameBatches, pause: float) -> FrameBatches:
    """Yield `batches`, and an empty batch after each `pause` seconds without one, whatever the next one waits for."""
    try:
        while True:
            coming = asyncio.ensure_future(anext(batches, None))
            while not (await asyncio.wait({coming}, timeout=pause))[0]:
                yield ()
            if (batch := coming.result()) is None:
                return
            yield batch
    finally:
        await _end(coming)


async def _end(task: asyncio.Future[Any]) -> None:
    """Cancel `task` and wait for its end, also through cancellations of the wait: a running generator cannot be closed."""
    task.cancel()
    cancellation: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancellation = error
    if cancellation is not None:
        raise cancellation
