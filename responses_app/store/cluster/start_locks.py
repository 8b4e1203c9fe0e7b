"""Locks in Postgres for the starts of equal requests with an idempotency key, over all web processes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from hashlib import blake2b
from typing import Any, Final
from weakref import WeakValueDictionary

import psycopg

from responses_app.errors import DatabaseAway, ServiceUnavailable
from responses_app.store.cluster.direct_link import answer_limit, close, connect

# Seconds that a request waits for the start of an equal one, and between two attempts: the pause doubles up to the second number.
WAIT_LIMIT_S: Final = 60.0
PAUSES_S: Final = (0.01, 0.25)
TAKE_SQL: Final = "SELECT pg_try_advisory_lock(%s)"
RELEASE_SQL: Final = "SELECT pg_advisory_unlock(%s)"


class StartLocks:
    """Locks of this process in Postgres, on one connection, opened at the first use. The end of the process releases them."""

    def __init__(self) -> None:
        self._link: psycopg.AsyncConnection[Any] | None = None
        self._connecting = asyncio.Lock()
        # Requests of this process wait here, because a session of Postgres gets a lock of its own a second time.
        self._local: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def hold(self, fingerprint: str) -> AsyncIterator[None]:
        """Hold the lock of a fingerprint. Raises ServiceUnavailable after WAIT_LIMIT_S seconds, DatabaseAway."""
        number = int.from_bytes(blake2b(fingerprint.encode(), digest_size=8).digest(), signed=True)
        async with self._local.setdefault(fingerprint, asyncio.Lock()):
            await self._take(number)
            try:
                yield
            finally:
                await self._release(number)

    async def close(self) -> None:
        """Close the connection, which releases all locks."""
        link, self._link = self._link, None
        await close(link)

    async def _take(self, number: int) -> None:
        pause = PAUSES_S[0]
        try:
            async with asyncio.timeout(WAIT_LIMIT_S):
                while not await self._try(number):
                    await asyncio.sleep(pause)
                    pause = min(2 * pause, PAUSES_S[1])
        except TimeoutError:
            raise ServiceUnavailable(
                "An equal request with this Idempotency-Key is being started. Try again in a moment."
            ) from None

    async def _try(self, number: int) -> bool:
        """Return whether the lock was free. Raises DatabaseAway."""
        with suppress(psycopg.Error):  # Of a connection that was lost while it was idle.
            return await self._attempt(number)
        try:
            return await self._attempt(number)
        except psycopg.Error as error:
            raise DatabaseAway from error

    async def _attempt(self, number: int) -> bool:
        attempt = asyncio.ensure_future(self._ask(TAKE_SQL, number))
        try:
            return await asyncio.shield(attempt)
        except asyncio.CancelledError:
            # Postgres may grant the lock to a request that has left.
            with suppress(psycopg.Error):
                if await attempt:
                    await self._release(number)
            raise

    async def _release(self, number: int) -> None:
        with suppress(psycopg.Error):  # Without the connection there is no lock.
            await self._ask(RELEASE_SQL, number)

    async def _ask(self, sql: str, number: int) -> bool:
        """Return the answer to a statement. An error closes the connection. Raises psycopg.Error."""
        async with self._connecting:
            self._link = link = self._link or await connect()
        try:
            with answer_limit(link):
                row = await (await link.execute(sql, [number])).fetchone()
        except BaseException:
            if self._link is link:
                self._link = None
            await close(link)
            raise
        return bool(row and row[0])
