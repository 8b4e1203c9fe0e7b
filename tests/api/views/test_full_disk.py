"""Full disk of the database: running responses wait and go on, new requests are refused, and the server is not ready."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from datetime import datetime
from unittest import mock

from asgiref.sync import sync_to_async
from django.db import OperationalError, connection
from django.test import SimpleTestCase
from psycopg import errors

from responses_app.errors import STORAGE_FULL
from responses_app.models import Response
from responses_app.runs import maintenance
from responses_app.runs.execute import run
from responses_app.store.storage_report import storage_state
from responses_app.store.storage_report.storage_state import FULL_AFTER_S, KNOWN_FOR_S, LOG_EVERY_S, StorageState
from responses_app.store.storage_report.storage_state import storage_state as current
from tests.support.api.case import HELLO, ApiCase, record_text
from tests.support.waiting import eventually

# Postgres reports a lack of space with this SQLSTATE, here from a trigger instead of the disk. The table of the connection hides the
# one of the schema: a trigger there would hold a lock until the end of the test, for which the maintenance of the manager would wait.
FILL_SQL = """
CREATE TEMPORARY TABLE responses_app_response (LIKE public.responses_app_response INCLUDING ALL);
CREATE FUNCTION pg_temp.fail_without_space() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = 'disk_full'; END $$;
CREATE TRIGGER no_space BEFORE INSERT ON pg_temp.responses_app_response
FOR EACH ROW EXECUTE FUNCTION pg_temp.fail_without_space();
DISCARD PLANS;
"""
FREE_SQL = "DROP TABLE pg_temp.responses_app_response; DISCARD PLANS"


class MovedClock:
    """MovedClock that a test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def no_space() -> OperationalError:
    """Return the error of Django for a full disk."""
    error = OperationalError("could not extend file")
    error.__cause__ = errors.DiskFull("could not extend file")
    return error


@sync_to_async
def run_sql(sql: str) -> None:
    """Run statements on the connection of the test."""
    with connection.cursor() as cursor:
        cursor.execute(sql)


class FullDiskTest(ApiCase):
    """With a scripted engine."""

    async def test_run_waits_for_space_while_new_requests_are_refused(self) -> None:
        clock = MovedClock()
        with mock.patch.object(current, "_clock", clock), self.assertLogs("responses.log", "WARNING") as log:
            async with self.serving(record_text(HELLO), record_text(HELLO)) as client:
                await self.hub.start()
                await run_sql(FILL_SQL)
                waiting = asyncio.create_task(self.post(client))
                await eventually(lambda: current.has_no_space)
                self.assertFalse(current.is_full)
                for _ in range(4):
                    clock.now += FULL_AFTER_S / 4
                    await eventually(lambda: current.last_failure == clock.now)
                self.assertTrue(current.is_full)
                refused = await self.post(client)
                self.refused(refused, 503, "storage_full", None, STORAGE_FULL)
                self.assertEqual(refused["Retry-After"], "15")
                health = await client.get("/health/ready")
                self.assertEqual(health.status_code, 503)
                self.assertEqual(health.json()["checks"]["storage"], {"status": "failed", "message": STORAGE_FULL})
                self.assertContains(await client.get("/sign-in"), STORAGE_FULL)
                await run_sql(FREE_SQL)
                self.assertEqual((await waiting).json()["status"], "completed")
                clock.now += KNOWN_FOR_S
                self.assertEqual((await self.made(client))["status"], "completed")
                self.assertNotIn("storage", (await client.get("/health/ready")).json()["failed"])
                self.assertNotContains(await client.get("/sign-in"), STORAGE_FULL)
        self.assertIn("the disk is full for 0 s", log.output[0])
        self.assertIn("commits had failed for 10 s", log.output[-1])

    async def test_request_is_refused_that_waits_too_long_for_its_beginning(self) -> None:
        with self.assertLogs("responses.log", "WARNING"):
            async with self.serving(*[record_text(HELLO)] * 4) as client:
                await self.hub.start()
                await run_sql(FILL_SQL)
                with mock.patch.object(run, "OPENING_LIMIT_S", 0.3):
                    answers = [await self.post(client, **fields) for fields in ({}, {"background": True}, {"stream": True})]
                for answer in answers:
                    self.refused(answer, 503, "storage_full", None, STORAGE_FULL)
                await run_sql(FREE_SQL)
                self.assertEqual((await self.made(client))["status"], "completed")
                await eventually(lambda: not self.hub.runs)
        # The first one was in a commit that was tried again, the other two never began.
        self.assertEqual(await Response.objects.acount(), 2)


class MaintenanceTest(SimpleTestCase):
    """Tasks of maintenance on a full disk."""

    def test_failing_task_is_logged_once_a_minute(self) -> None:
        def write(now: datetime) -> Iterator[int]:
            raise no_space()
            yield 0

        with mock.patch.object(maintenance, "_warned", {}), self.assertLogs("responses.maintenance", "WARNING") as log:
            for _ in range(5):
                maintenance._run_steps(write, threading.Event())
        self.assertEqual(log.output, ["WARNING:responses.maintenance:write: could not extend file"])


class StorageStateTest(ApiCase):
    """With a clock of the test."""

    def setUp(self) -> None:
        self.clock = MovedClock()
        self.state = StorageState(self.clock)

    def fail_for(self, seconds: float) -> None:
        """Let a commit fail every second."""
        self.state.note_failure(no_space())
        for _ in range(int(seconds)):
            self.clock.now += 1
            self.state.note_failure(no_space())

    def test_short_lack_of_space_is_not_refused(self) -> None:
        with self.assertLogs("responses.log", "WARNING"):
            self.fail_for(FULL_AFTER_S - 1)
            self.assertFalse(self.state.is_full)
            self.clock.now += 1
            self.assertTrue(self.state.is_full)
            self.state.note_success()
            self.assertTrue(self.state.is_full)
            self.clock.now += KNOWN_FOR_S
            self.state.note_success()
        self.assertFalse(self.state.is_full)

    def test_next_request_tries_after_the_last_run_has_given_up(self) -> None:
        with self.assertLogs("responses.log", "WARNING"):
            self.fail_for(FULL_AFTER_S)
        self.assertTrue(self.state.is_full)
        self.clock.now += KNOWN_FOR_S
        self.assertFalse(self.state.is_full)

    def test_lost_database_is_no_full_disk(self) -> None:
        with self.assertLogs("responses.log", "WARNING"), mock.patch.object(storage_state, "LEAST_FREE_BYTES", 0):
            for _ in range(int(FULL_AFTER_S) + 1):
                self.state.note_failure(OperationalError("the connection is lost"))
                self.clock.now += 1
        self.assertFalse(self.state.is_full)

    def test_lost_database_on_a_disk_without_space_is_a_full_disk(self) -> None:
        with mock.patch.object(storage_state, "LEAST_FREE_BYTES", 2**62):
            self.assertTrue(storage_state.is_disk_full(OperationalError("the connection is lost")))

    def test_lost_database_is_timed_from_the_first_of_its_slow_attempts(self) -> None:
        with self.assertLogs("responses.log", "WARNING") as log, mock.patch.object(storage_state, "LEAST_FREE_BYTES", 0):
            for _ in range(3):
                self.state.note_failure(OperationalError("refused"))
                self.clock.now += 21
            self.state.note_success()
        lost = [f"WARNING:responses.log:database lost for {age} s, trying again: refused" for age in (0, 21, 42)]
        self.assertEqual(log.output[:3], lost)
        self.assertIn("commits had failed for 42 s", log.output[3])

    def test_failures_are_logged_once_in_a_while(self) -> None:
        with self.assertLogs("responses.log", "WARNING") as log:
            for _ in range(2 * int(LOG_EVERY_S) * 5):
                self.state.note_failure(no_space())
                self.clock.now += 0.2
        self.assertEqual(len(log.output), 2)
