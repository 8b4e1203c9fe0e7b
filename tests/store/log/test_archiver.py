"""Archiver: batches of logs, logs that cannot be archived, one process at a time, and kills of the process."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import Any, Final
from unittest import mock

import psutil
import psycopg
import pytest
from django.db import OperationalError, connection
from django.db.models import QuerySet
from django.test import TransactionTestCase, override_settings
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase
from psycopg import errors

from responses_app.models import Event, LogForm, LogPage, Response
from responses_app.protocol.encoding import EventFrame
from responses_app.runs.maintenance import LOGS_PER_STEP, archive_due
from responses_app.server.processes import archiver as process
from responses_app.store.db import execute_prepared, session_parameters
from responses_app.store.log import archive, reader
from responses_app.store.log.archiver import LOCK, TRY_AGAIN_S, Archiver, archiver_lock
from tests.support.store.log_records import NOW, frame
from tests.support.store.stored_logs import log_frames, stored_response
from tests.support.waiting import LIMIT_S, wait_until

LATER: Final = NOW + timedelta(days=1)


def stored_logs(*lengths: int) -> dict[int, list[EventFrame]]:
    """Store ended responses with logs of these lengths, and return the logs by key."""
    logs = {}
    for place, length in enumerate(lengths):
        frames = [frame(number) for number in range(length)]
        logs[stored_response(frames, f"resp_{place}").pk] = frames
    return logs


class BatchTest(TestCase):
    """Batches of logs."""

    def check(self, logs: dict[int, list[EventFrame]]) -> None:
        """Check that each log is archived and reads as before."""
        self.assertEqual(set(Response.objects.filter(pk__in=logs).values_list("log_form", flat=True)), {LogForm.PAGES})
        self.assertEqual({key: _read(key) for key in logs}, logs)
        self.assertEqual(Event.objects.count(), 0)

    @settings(max_examples=15, deadline=None)
    @given(st.lists(st.integers(0, 12), min_size=1, max_size=6), st.integers(2, 20), st.integers(1, 2000))
    def test_batches_of_any_logs_read_the_same(self, lengths: list[int], rows_per_batch: int, bytes_per_batch: int) -> None:
        logs = stored_logs(*lengths)
        limits: dict[str, Any] = {"ROWS_PER_BATCH": rows_per_batch, "BYTES_PER_BATCH": bytes_per_batch}
        with mock.patch.multiple(archive, **limits):
            self.assertEqual(sum(Archiver().archive_due(LATER, 4)), sum(lengths))
        self.check(logs)

    def test_batch_costs_few_statements(self) -> None:
        logs = stored_logs(*[5] * 30)
        # Savepoint, lock, read, replace, release.
        with self.assertNumQueries(2), mock.patch.object(archive, "execute_prepared", wraps=execute_prepared) as run:
            archive.archive_logs(list(logs))
        self.assertEqual(run.call_count, 3)
        self.check(logs)

    def test_log_that_raises_an_error_stops_no_others(self) -> None:
        logs = stored_logs(3, 4)
        refused, archive_logs = next(iter(logs)), archive.archive_logs
        out_of_memory = OperationalError("out of memory")
        out_of_memory.__cause__ = errors.OutOfMemory("out of memory")
        for error, expected in ((out_of_memory, [4]), (KeyError("start"), [0])):
            with self.subTest(error=error), self.assertLogs("responses.archive", "ERROR"):

                def fail(keys: Sequence[int], error: Exception = error) -> dict[int, int]:
                    if refused in keys:
                        raise error
                    return archive_logs(keys)

                with mock.patch.object(archive, "archive_logs", fail):
                    self.assertEqual(list(Archiver().archive_due(LATER)), expected)
        lost = mock.patch.object(archive, "archive_logs", side_effect=OperationalError("the connection is lost"))
        with lost, self.assertRaises(OperationalError):
            list(Archiver().archive_due(LATER))

    def test_attempts_beside_a_full_disk_are_announced_once(self) -> None:
        full = mock.patch.object(Archiver, "archive_due", side_effect=OperationalError("no space left"))
        with full, self.assertLogs("responses.archive", "INFO") as log:
            for is_first in (True, False, False):
                with self.assertRaises(OperationalError):
                    process.archive_with_lock(is_first=is_first)
        self.assertEqual(len(log.output), 1)

    def test_damaged_log_stops_no_others_and_is_tried_again_later(self) -> None:
        logs = stored_logs(3, 4, 5)
        damaged, now = list(logs)[1], [0.0]
        Event.objects.filter(response_id=damaged, number=1).update(data="no\nJSON")
        archiver = Archiver(lambda: now[0])
        with self.assertLogs("responses.archive", "ERROR") as log:
            self.assertEqual(list(archiver.archive_due(LATER)), [8])
            self.assertEqual(list(archiver.archive_due(LATER)), [])
        self.assertEqual(len(log.output), 1)
        self.assertIn(f"the key {damaged} cannot be archived", log.output[0])
        Event.objects.filter(response_id=damaged, number=1).update(data=logs[damaged][1].data.decode())
        self.assertEqual(list(archiver.archive_due(LATER)), [])
        now[0] = TRY_AGAIN_S + 1
        self.assertEqual(list(archiver.archive_due(LATER)), [4])
        self.check(logs)


class SeveralProcessesTest(TransactionTestCase):
    """Several connections."""

    def test_locked_log_is_left_for_later(self) -> None:
        logs = stored_logs(3, 4)
        locked = next(iter(logs))
        with psycopg.connect(**session_parameters()) as other:
            other.execute("SELECT 1 FROM responses_app_response WHERE id = %s FOR UPDATE", [locked])
            self.assertEqual(list(Archiver().archive_due(LATER)), [4, 0])
        self.assertEqual(list(Archiver().archive_due(LATER)), [3])

    def test_maintenance_leaves_archiving_to_the_process_that_has_the_lock(self) -> None:
        stored_logs(3)
        with psycopg.connect(**session_parameters()) as other:
            other.execute("SELECT pg_advisory_lock(%s)", [LOCK])
            self.assertEqual(list(archive_due(LATER)), [])
            other.execute("SELECT pg_advisory_unlock(%s)", [LOCK])
            self.assertEqual(list(archive_due(LATER)), [3])
        with archiver_lock() as has_lock, psycopg.connect(**session_parameters()) as other:
            self.assertTrue(has_lock)
            self.assertEqual(other.execute("SELECT pg_try_advisory_lock(%s)", [LOCK]).fetchone(), (False,))

    def test_maintenance_that_pauses_leaves_the_lock_to_another_process(self) -> None:
        stored_logs(*[2] * LOGS_PER_STEP, 3)
        batches = archive_due(LATER)
        self.assertEqual(next(batches), 2 * LOGS_PER_STEP)
        with psycopg.connect(**session_parameters()) as other:
            self.assertEqual(other.execute("SELECT pg_try_advisory_lock(%s)", [LOCK]).fetchone(), (True,))
            self.assertEqual(list(batches), [])
            other.execute("SELECT pg_advisory_unlock(%s)", [LOCK])
            self.assertEqual(list(archive_due(LATER)), [3])

    @pytest.mark.slow
    @override_settings(RESPONSES_SEAL_AFTER=timedelta(0))
    def test_killed_process_is_replaced_and_each_log_has_one_form(self) -> None:
        frames = log_frames(120)
        keys = [stored_response(frames, f"resp_{place}").pk for place in range(120)]
        unarchived = Response.objects.filter(log_form=LogForm.ROWS)
        environ = {"DATABASE_URL": _url(), "RESPONSES_SEAL_AFTER": "0", "DJANGO_SETTINGS_MODULE": "project.settings"}
        pauses = mock.patch.multiple(process, START_AFTER_S=0.0, RESTART_PAUSES_S=(0.0,), NICENESS=0)
        with mock.patch.dict(os.environ, environ), pauses, process.started():
            # Locked logs are left for the second process, however much the first archives before its kill.
            with psycopg.connect(**session_parameters()) as other:
                other.execute("SELECT 1 FROM responses_app_response WHERE id = ANY(%s) FOR UPDATE", [keys[-20:]])
                wait_until(partial(_has_fewer, unarchived, len(keys)), limit_s=LIMIT_S, poll_s=0.001)
                self._kill_and_check(keys)
                count = unarchived.count()
            wait_until(partial(_has_fewer, unarchived, count), limit_s=LIMIT_S, poll_s=0.001)
            self._kill_and_check(keys)
            wait_until(lambda: not unarchived.exists(), limit_s=LIMIT_S)
        self.assertEqual(Event.objects.count(), 0)
        for key in keys:
            self.assertEqual(_read(key), frames)

    def _kill_and_check(self, keys: Sequence[int]) -> None:
        _kill()
        for row in Response.objects.filter(pk__in=keys[::12]):
            forms = Event.objects.filter(response=row).exists(), LogPage.objects.filter(response=row).exists()
            self.assertEqual(forms, (row.log_form == LogForm.ROWS, row.log_form == LogForm.PAGES))


def _read(key: int) -> list[EventFrame]:
    frames: list[EventFrame] = []
    while more := reader.read(key, frames[-1].number if frames else -1):
        frames += more
    return frames


def _has_fewer(rows: QuerySet[Response], count: int) -> bool:
    return rows.count() < count


def _kill() -> None:
    """Kill the archiver process of this process."""
    for child in psutil.Process().children():
        if child.status() != psutil.STATUS_ZOMBIE and process.__name__ in child.cmdline():
            child.kill()


def _url() -> str:
    values = connection.settings_dict
    return f"postgresql://{values['USER']}@/{values['NAME']}?host={values['HOST']}&port={values['PORT'] or 5432}"
