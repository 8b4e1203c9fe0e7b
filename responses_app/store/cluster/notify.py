"""Notifications between processes: LISTEN and NOTIFY of Postgres, on dedicated connections.

A notification is a hint to look into the tables. Tables are polled as well, so a lost connection causes a delay and no error. A
payload is a kind and the primary keys of responses:

    work        a lease is free to claim
    cancel 17   the owner has to end response 17
    repeat 17   the request of response 17 was sent again, so the first client may leave
    watch 17    a process follows the log of response 17 and needs `log` notifications
    log 17 23   the logs of responses 17 and 23 have new events
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

import psycopg

from responses_app.store.cluster.direct_link import answer_limit, close, connect
from responses_app.store.repeats import HOLD_SQL

logger = logging.getLogger("responses.signals")

CHANNEL = "responses"
RETRY_DELAY_S = 1.0
# Notifications within this many seconds are sent together.
BATCH_DELAY_S = 0.005
# Keys per notification: Postgres limits a payload to 8000 bytes.
MAX_KEYS = 300
MAX_QUEUED = 10_000
# Seconds without a notification after which the receiver asks Postgres for a sign of life.
QUIET_S = 10.0

OnNotification = Callable[[str, list[int]], None]


class Notifier:
    """Sender and receiver of notifications: two tasks. Calls `on_notification(kind, keys)` on the event loop.

    The connection of the receiver holds the advisory lock `lock_number`, by which other processes see that this one lives.
    """

    def __init__(self, on_notification: OnNotification, lock_number: int) -> None:
        self._lock_number = lock_number
        self.connected = False
        # Time of the loss of the connection, while it lasts.
        self._lost_since: float | None = None
        self._on_notification = on_notification
        self._queued: dict[tuple[str, int], None] = {}
        self._wake = asyncio.Event()
        loop, empty = asyncio.get_running_loop(), contextvars.Context
        self._tasks = [
            loop.create_task(self._receive(), name="signals in", context=empty()),
            loop.create_task(self._send_queued(), name="signals out", context=empty()),
        ]

    def notify(self, kind: str, pk: int = 0) -> None:
        """Queue a notification to all processes, including the sender."""
        if len(self._queued) < MAX_QUEUED:
            self._queued[kind, pk] = None
            self._wake.set()

    async def close(self) -> None:
        """Send the queued notifications and disconnect."""
        with suppress(psycopg.Error):
            await self._flush()
        for task in self._tasks:
            task.cancel()
        await asyncio.wait(self._tasks, timeout=RETRY_DELAY_S)

    async def _receive(self) -> None:
        while True:
            try:
                async with await connect() as link:
                    with answer_limit(link):
                        await link.execute(HOLD_SQL, [self._lock_number])
                        await link.execute(f"LISTEN {CHANNEL}")
                    self._note_connection()
                    self._on_notification("work", [])  # Notifications may have been lost before LISTEN.
                    while True:
                        async for notice in link.notifies(timeout=QUIET_S):
                            self._pass_on(notice.payload)
                        with answer_limit(link):
                            await link.execute("SELECT 1")
            except psycopg.Error as error:
                self._note_loss(error)
            finally:
                self.connected = False
            await asyncio.sleep(RETRY_DELAY_S)

    def _pass_on(self, payload: str) -> None:
        """Pass a notification on. Other programs may send anything to the channel, which must not end the task."""
        try:
            kind, *keys = payload.split()
            self._on_notification(kind, [int(pk) for pk in keys])
        except Exception:
            logger.exception("a notification cannot be passed on: %.100r", payload)

    def _note_connection(self) -> None:
        self.connected = True
        if self._lost_since is not None:
            logger.info("notifications arrive again, after %.0f s", time.monotonic() - self._lost_since)
            self._lost_since = None

    def _note_loss(self, error: psycopg.Error) -> None:
        """Log the loss of the connection once: the attempts to connect again come every second."""
        if self._lost_since is None:
            self._lost_since = time.monotonic()
            logger.warning("notifications are interrupted, reconnecting: %s", str(error).strip() or type(error).__name__)

    async def _send_queued(self) -> None:
        link: psycopg.AsyncConnection[Any] | None = None
        try:
            while True:
                await self._wake.wait()
                await asyncio.sleep(BATCH_DELAY_S)
                try:
                    link = link or await connect()
                    await self._flush(link)
                except psycopg.Error:
                    await close(link)
                    link = None
                    await asyncio.sleep(RETRY_DELAY_S)
        finally:
            await close(link)

    async def _flush(self, link: psycopg.AsyncConnection[Any] | None = None) -> None:
        queued, self._queued = self._queued, {}
        self._wake.clear()
        if not queued:
            return
        if link is None:
            async with await connect() as link:
                await self._send(link, queued)
        else:
            await self._send(link, queued)

    async def _send(self, link: psycopg.AsyncConnection[Any], queued: Iterable[tuple[str, int]]) -> None:
        by_kind: dict[str, list[int]] = {}
        for kind, pk in queued:
            by_kind.setdefault(kind, []).append(pk)
        for kind, keys in by_kind.items():
            for start in range(0, len(keys), MAX_KEYS):
                payload = " ".join([kind, *map(str, keys[start : start + MAX_KEYS])])
                with answer_limit(link):
                    await link.execute("SELECT pg_notify(%s, %s)", [CHANNEL, payload])
