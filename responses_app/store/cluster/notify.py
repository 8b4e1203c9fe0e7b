"""What processes tell each other through Postgres: LISTEN and NOTIFY, on one connection of its own.

A signal is a hint, never the message: whoever misses one finds the same in the tables a moment later, so a connection that is
lost costs time and nothing else. What is said on the one channel, in words:

    work        there is something to claim
    cancel 17   whoever runs this response is to end it
    watch 17    somebody follows the log of this response from another process, and wants to be told
    log 17 23   there is more in these logs
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

import psycopg
from django.db import connection

logger = logging.getLogger("responses.signals")

CHANNEL = "responses"
PAUSE = 1.0
# Signals that come within this time of each other leave together.
GATHER = 0.005
# Postgres takes 8000 bytes at a time.
MOST = 300
QUEUED = 10_000
CONNECT_S = 5
# What a connection of Django's has and this one has not: it speaks in plain strings only.
DJANGOS = frozenset({"pool", "context", "cursor_factory", "prepare_threshold"})

OnNotification = Callable[[str, list[int]], None]


class Signals:
    """One task that listens and one that tells. `heard` is called on the loop, with the word and the numbers behind it."""

    def __init__(self, heard: OnNotification) -> None:
        self.connected = False
        self._heard = heard
        self._told: dict[tuple[str, int], None] = {}
        self._wake = asyncio.Event()
        loop, empty = asyncio.get_running_loop(), contextvars.Context
        self._tasks = [
            loop.create_task(self._listen(), name="signals in", context=empty()),
            loop.create_task(self._tell(), name="signals out", context=empty()),
        ]

    def tell(self, word: str, number: int = 0) -> None:
        """Tell all processes, this one included, soon."""
        if len(self._told) < QUEUED:
            self._told[word, number] = None
            self._wake.set()

    async def close(self) -> None:
        """Tell what is left, and hang up."""
        with suppress(psycopg.Error):
            await self._flush()
        for task in self._tasks:
            task.cancel()
        await asyncio.wait(self._tasks, timeout=PAUSE)

    async def _listen(self) -> None:
        while True:
            try:
                async with await _connect() as link:
                    await link.execute(f"LISTEN {CHANNEL}")
                    self.connected = True
                    self._heard("work", [])  # Whatever was said meanwhile.
                    async for notice in link.notifies():
                        word, *numbers = notice.payload.split()
                        self._heard(word, [int(number) for number in numbers])
            except psycopg.Error as error:
                logger.warning("no signals for a moment: %s", str(error).strip() or type(error).__name__)
            finally:
                self.connected = False
            await asyncio.sleep(PAUSE)

    async def _tell(self) -> None:
        link: psycopg.AsyncConnection[Any] | None = None
        try:
            while True:
                await self._wake.wait()
                await asyncio.sleep(GATHER)
                try:
                    link = link or await _connect()
                    await self._flush(link)
                except psycopg.Error:
                    await _closed(link)
                    link = None
                    await asyncio.sleep(PAUSE)
        finally:
            await _closed(link)

    async def _flush(self, link: psycopg.AsyncConnection[Any] | None = None) -> None:
        told, self._told = self._told, {}
        self._wake.clear()
        if not told:
            return
        if link is None:
            async with await _connect() as link:
                await self._send(link, told)
        else:
            await self._send(link, told)

    async def _send(self, link: psycopg.AsyncConnection[Any], told: Iterable[tuple[str, int]]) -> None:
        words: dict[str, list[int]] = {}
        for word, number in told:
            words.setdefault(word, []).append(number)
        for word, numbers in words.items():
            for at in range(0, len(numbers), MOST):
                payload = " ".join([word, *map(str, numbers[at : at + MOST])])
                await link.execute("SELECT pg_notify(%s, %s)", [CHANNEL, payload])


async def _closed(link: psycopg.AsyncConnection[Any] | None) -> None:
    if link is not None:
        with suppress(psycopg.Error):
            await link.close()


async def _connect() -> psycopg.AsyncConnection[Any]:
    """A connection like Django's own, outside its pool."""
    parameters = connection.get_connection_params()
    ours = {name: value for name, value in parameters.items() if name not in DJANGOS}
    making = asyncio.ensure_future(psycopg.AsyncConnection.connect(**ours, autocommit=True, connect_timeout=CONNECT_S))
    try:
        return await asyncio.shield(making)
    except asyncio.CancelledError:
        # Half a connection cannot be hung up: the server would go on to greet somebody who has gone.
        with suppress(psycopg.Error):
            await (await making).close()
        raise
