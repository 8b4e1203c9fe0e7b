"""Locks of requests with an idempotency key: processes have a session of Postgres each, as the two `StartLocks` here."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from unittest.mock import patch

import psycopg
from django.test import TransactionTestCase

from responses_app.errors import DatabaseAway, ServiceUnavailable
from responses_app.store.cluster import direct_link, start_locks
from responses_app.store.cluster.start_locks import StartLocks
from tests.support.waiting import eventually, run_ready_tasks

# Locks of this database alone: other tests hold locks in databases of the same server.
HELD = """FROM pg_locks JOIN pg_database ON pg_database.oid = pg_locks.database
WHERE locktype = 'advisory' AND mode = 'ExclusiveLock' AND granted AND datname = current_database()"""
COUNT_SQL = f"SELECT count(*) {HELD}"
END_SQL = f"SELECT pg_terminate_backend(pid) {HELD}"


async def ask(sql: str) -> Any:
    """Return the first value of a query, from a session of its own."""
    async with await direct_link.connect() as link:
        row = await (await link.execute(sql.encode())).fetchone()
    return row and row[0]


class StartLocksTest(TransactionTestCase):
    """With real sessions of Postgres."""

    @asynccontextmanager
    async def processes(self) -> AsyncIterator[tuple[StartLocks, StartLocks]]:
        """Yield the locks of two processes."""
        first, second = StartLocks(), StartLocks()
        yield first, second
        await first.close()
        await second.close()
        await eventually(self.is_free)

    async def is_free(self) -> bool:
        """Return whether no session has a lock."""
        return not await ask(COUNT_SQL)

    async def test_equal_requests_of_all_processes_follow_one_another(self) -> None:
        running = most = 0

        async def start(locks: StartLocks) -> None:
            nonlocal running, most
            async with locks.hold("one"):
                running += 1
                most = max(most, running)
                await run_ready_tasks()
                running -= 1

        async with self.processes() as processes:
            await asyncio.gather(*(start(locks) for locks in processes * 4))
            self.assertEqual(most, 1)
            self.assertTrue(await self.is_free())

    async def test_other_requests_do_not_wait(self) -> None:
        async with self.processes() as (first, second), first.hold("one"), first.hold("two"), second.hold("three"):
            self.assertEqual(await ask(COUNT_SQL), 3)

    async def test_an_error_of_the_start_releases_the_lock(self) -> None:
        async with self.processes() as (first, second):
            with self.assertRaises(ValueError):
                async with first.hold("one"):
                    raise ValueError
            async with second.hold("one"):
                pass

    async def test_a_wait_has_a_limit(self) -> None:
        async with self.processes() as (first, second), first.hold("one"):
            with patch.object(start_locks, "WAIT_LIMIT_S", 0.05), self.assertRaises(ServiceUnavailable) as caught:
                async with second.hold("one"):
                    self.fail("held twice")
        self.assertIn("being started", str(caught.exception))

    async def test_requests_that_leave_keep_no_lock(self) -> None:
        async def start(locks: StartLocks) -> None:
            async with locks.hold("one"):
                await asyncio.Event().wait()

        async with self.processes() as processes:
            for steps in range(40):
                starting = [asyncio.create_task(start(locks)) for locks in processes]
                await run_ready_tasks(steps)
                for task in starting:
                    task.cancel()
                await asyncio.wait(starting)
                self.assertTrue(await self.is_free())

    async def test_a_process_that_dies_releases_its_locks(self) -> None:
        async with self.processes() as (first, second), first.hold("one"):
            await ask(END_SQL)
            async with second.hold("one"):
                pass
            # A connection that was lost while it was idle is replaced.
            async with first.hold("two"):
                pass

    async def test_a_database_that_is_away_is_named(self) -> None:
        async def refuse() -> psycopg.AsyncConnection[Any]:
            raise psycopg.OperationalError

        with patch.object(start_locks, "connect", refuse), self.assertRaises(DatabaseAway):
            async with StartLocks().hold("one"):
                self.fail("held without a database")
