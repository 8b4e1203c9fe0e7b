"""Limit of maintenance: a lock that another session holds ends the task and not only the wait."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from unittest import mock

import psycopg
from django.db import OperationalError, connection
from django.test import TransactionTestCase

from responses_app.models import Response
from responses_app.runs import maintenance
from tests.support.store.connection_loss import place


class MaintenanceLockTest(TransactionTestCase):
    """Against a real lock of another session."""

    def tearDown(self) -> None:
        connection.close()

    def test_lock_of_another_session_ends_the_task(self) -> None:
        def count_responses(_now: datetime) -> Iterator[int]:
            yield Response.objects.count()

        limited = maintenance.limit_lock_waits(count_responses)
        self.assertEqual(limited.__name__, "count_responses")
        with (
            psycopg.connect(**place()) as other,
            mock.patch.object(maintenance, "LOCK_TIMEOUT_SQL", "SET lock_timeout TO '10ms'"),
        ):
            other.execute("LOCK TABLE responses_app_response")
            with self.assertRaisesRegex(OperationalError, "lock timeout"):
                list(limited(datetime.now(UTC)))
            other.rollback()
            self.assertEqual(list(limited(datetime.now(UTC))), [0])
