"""Look-ups of repeated requests: the right response of each, few queries, and an index whatever the statistics are."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import psycopg
from asgiref.sync import sync_to_async
from django.db import DataError, connection, connections, transaction
from django.test import TransactionTestCase
from django.utils import timezone

from responses_app.models import Lease
from responses_app.store import repeats
from responses_app.store.log.rows.pipeline_connection import SESSION_SQL
from responses_app.store.log.rows.repeat_lookups import LookupConnection, RepeatLookups
from tests.support.store.connection_loss import cut, place
from tests.support.store.log_records import log
from tests.support.waiting import eventually

COUNT = 100
# Rows of responses that the statements of this transaction have read, in any way.
READ_SQL = "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = 'responses_app_response'"


def add(fingerprint: str, ended_s: float | None = None, **lease: Any) -> int:
    """Add a response that runs under a lease, or that ended `ended_s` seconds ago."""
    row = log(f"resp_{uuid4().hex}").row
    row.fingerprint = fingerprint
    row.ended_at = None if ended_s is None else timezone.now() - timedelta(seconds=ended_s)
    row.save()
    if ended_s is None:
        Lease.objects.create(response=row, model="m", **lease)
    return row.pk


class RepeatLookupsTest(TransactionTestCase):
    """Against the real database."""

    def tearDown(self) -> None:
        connections.close_all()

    @asynccontextmanager
    async def lookups(self) -> AsyncIterator[RepeatLookups]:
        """Yield look-ups, whose connection is closed at the end."""
        lookups = RepeatLookups()
        try:
            yield lookups
        finally:
            lookups.close()

    async def test_simultaneous_requests_get_their_responses_in_one_query(self) -> None:
        living = uuid4()
        expected = await sync_to_async(add_each)(living)
        queries: list[Sequence[str]] = []

        class CountedConnection(LookupConnection):
            async def find(self, fingerprints: Sequence[str]) -> Sequence[int | None]:
                queries.append(fingerprints)
                return await super().find(fingerprints)

        async with self.lookups() as lookups, await psycopg.AsyncConnection.connect(**place()) as process:
            await process.execute(repeats.HOLD_SQL, [repeats.lock_number(living)])
            lookups._connection = CountedConnection()
            # An equal request waits for the same answer.
            keys = await asyncio.gather(*map(lookups.find, [*expected, "bdead"]))
            self.assertEqual(dict(zip(expected, keys, strict=False)), expected)
            self.assertEqual((keys[-1], queries), (expected["bdead"], [list(expected)]))
            # The query of a thread, for requests inside of a transaction.
            self.assertEqual(await sync_to_async(repeats.find)(list(expected)), list(expected.values()))

    async def test_the_statement_is_planned_once(self) -> None:
        async with self.lookups() as lookups:
            for number in range(7):
                await lookups.find(f"b{number}")
            link = lookups._connection._connection
            assert link is not None
            link.pgconn.exit_pipeline_mode()
            row = link.execute("SELECT generic_plans, custom_plans FROM pg_prepared_statements").fetchone()
            self.assertEqual(row, (7, 0))

    async def test_a_lost_connection_is_replaced(self) -> None:
        key = await sync_to_async(add)("kold", 5000)
        async with self.lookups() as lookups:
            self.assertEqual(await lookups.find("kold"), key)
            await asyncio.to_thread(cut, place())
            await eventually(lambda: lookups._connection._connection is None)
            self.assertEqual(await lookups.find("kold"), key)

    async def test_an_error_reaches_each_request_and_no_later_one(self) -> None:
        async with self.lookups() as lookups:
            # A text that Postgres does not take.
            refused = await asyncio.gather(lookups.find("b\0"), lookups.find("b"), return_exceptions=True)
            self.assertEqual([type(error) for error in refused], [DataError] * 2)
            self.assertIsNone(await lookups.find("b"))

    def test_lookup_reads_few_rows_after_an_analysis_of_emptied_tables(self) -> None:
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE responses_app_response, responses_app_lease")
            for number in range(COUNT):
                add(f"b{number}", 5)
            with transaction.atomic():
                for sql in SESSION_SQL:
                    cursor.execute(sql.replace(b"SET ", b"SET LOCAL ").decode())
                cursor.execute(READ_SQL)
                (before,) = cursor.fetchone()
                repeats.find(["b1", "bnew"])
                cursor.execute(READ_SQL)
                self.assertLessEqual(cursor.fetchone()[0] - before, 2)


def add_each(living: UUID) -> dict[str, int | None]:
    """Add responses of all kinds, and return the key to find by the fingerprint, None for a response that is not to be found."""
    keys = {
        "bdead": add("bdead", worker=uuid4()),
        "bfree": add("bfree"),
        "btaken": add("btaken", worker=living, epoch=2),
        "bended": add("bended", 5),
        "kold": add("kold", 5000),
        "kruns": add("kruns", worker=living),
        "btwice": max(add("btwice", 5), add("btwice", 6)),
    }
    add("bruns", worker=living)
    add("bold", 5000)
    add("", 5)
    return {**keys, **dict.fromkeys(("bruns", "bold", "bnew", ""), None)}
