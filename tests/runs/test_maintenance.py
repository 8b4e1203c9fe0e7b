"""Limit of maintenance: a lock that another session holds ends the task and not only the wait."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from datetime import datetime
from unittest import mock

import psycopg
from django.db import connection
from django.test import TransactionTestCase

from responses_app.models import Response
from responses_app.runs import maintenance
from tests.support.store.connection_loss import place


class MaintenanceLockTest(TransactionTestCase):
    """Against a real lock of another session."""

    def tearDown(self) -> None:
        connection.close()

    def test_lock_of_another_session_ends_the_task(self) -> None:
        counted: list[int] = []

        def count_responses(_now: datetime) -> Iterator[int]:
            counted.append(Response.objects.count())
            yield 1

        def run() -> None:
            asyncio.run(asyncio.to_thread(maintenance._run_steps, count_responses, threading.Event()))

        with (
            psycopg.connect(**place()) as other,
            mock.patch.object(maintenance, "LOCK_TIMEOUT_SQL", "SET lock_timeout TO '10ms'"),
            mock.patch.object(maintenance, "_warned", {}),
        ):
            other.execute("LOCK TABLE responses_app_response")
            with self.assertLogs("responses.maintenance", "WARNING") as log:
                run()
            self.assertIn("lock timeout", log.output[0])
            other.rollback()
            run()
        self.assertEqual(counted, [0])

    def test_limit_ends_with_the_task(self) -> None:
        limits: list[tuple[str, int]] = []

        def note_limit(_now: datetime | None = None) -> Iterator[int]:
            with connection.cursor() as cursor:
                cursor.execute("SELECT current_setting('lock_timeout'), pg_backend_pid()")
                limits.extend(cursor.fetchall())
            yield 1

        connection.close()
        maintenance._run_steps(note_limit, threading.Event())
        ((limit, session),) = limits
        self.assertEqual(limit, "10s")
        # The pool has at most 16 sessions, and hands out first what was returned longest ago.
        for _ in range(20):
            list(note_limit())
            connection.close()
        self.assertEqual({limit for limit, other in limits[1:] if other == session}, {"0"})
