"""Upgrade of the tables of the log: rows and pages of the earlier tables are read as before, also after the way back."""

from __future__ import annotations

import pytest
from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.test import TransactionTestCase

from responses_app.models import Event, LogPage
from responses_app.store.log import reader
from responses_app.store.log.archive import archive_log
from responses_app.store.log.rows import partitions
from tests.support.store.stored_logs import log_frames, stored_response

pytestmark = pytest.mark.slow


def migrate(name: str) -> None:
    """Migrate the tables of the application to a migration, forwards or backwards."""
    executor = MigrationExecutor(connection)
    executor.migrate([("responses_app", name)])


class LogMigrationTest(TransactionTestCase):
    """Against the real database."""

    def test_logs_survive_the_migration_in_both_directions(self) -> None:
        frames = log_frames(1500)
        running, ended = stored_response(frames, "resp_rows"), stored_response(frames, "resp_pages")
        archive_log(ended.pk)
        before = list(LogPage.objects.values_list("response_id", "first", "last", "data"))
        migrate("0007_chunk_storage")
        try:
            with connection.cursor() as cursor:
                cursor.execute("SELECT count(id), count(DISTINCT response_id) FROM responses_app_event")
                self.assertEqual(cursor.fetchone(), (len(frames), 1))
                cursor.execute("SELECT response_id, first, last, data FROM responses_app_logpage ORDER BY id")
                self.assertEqual(cursor.fetchall(), before)
        finally:
            call_command("migrate", verbosity=0)
        for row in (running, ended):
            self.assertEqual(reader.read(row.pk, 499)[:500], frames[500:1000])
            self.assertEqual(reader.last_number(row.pk), len(frames) - 1)
        self.assertEqual(list(LogPage.objects.values_list("response_id", "first", "last", "data")), before)
        self.assertEqual(Event.objects.count(), len(frames))
        (partition,) = partitions.list_partitions()
        self.assertTrue(partition.start <= running.pk < partition.end)
