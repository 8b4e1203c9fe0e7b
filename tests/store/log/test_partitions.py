"""Partitions of pages: made ahead, dropped when nothing in them is left, and no page is lost where no partition fits."""

from __future__ import annotations

from datetime import timedelta

import psycopg
from django.db import connection
from django.test import TestCase, TransactionTestCase

from responses_app.models import Event, LogPage, Response
from responses_app.store.log import reader, retention
from responses_app.store.log.archive import archive_log
from responses_app.store.log.rows import partitions
from tests.support.store.connection_loss import place
from tests.support.store.failing_deletions import fail_deletions
from tests.support.store.log_records import NOW
from tests.support.store.stored_logs import log_frames, stored_response

SOON = NOW + timedelta(seconds=1)


def move_sequence(key: int) -> None:
    """Give the next response the primary key `key`."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT setval(pg_get_serial_sequence('responses_app_response', 'id'), %s, false)", [key])


def archived(uid: str, key: int | None = None) -> Response:
    """Store an archived log; with `key`, of a response with this primary key."""
    if key is not None:
        move_sequence(key)
    row = stored_response(log_frames(3), uid)
    archive_log(row.pk)
    return row


def table_of(row: Response) -> str:
    """Return the partition with the pages of a response."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT DISTINCT tableoid::regclass::text FROM responses_app_logpage WHERE response_id = %s", [row.pk])
        return str(cursor.fetchone()[0])


class PartitionTest(TestCase):
    """Against the real database."""

    def setUp(self) -> None:
        self.step = partitions.STEP
        self.first = partitions.list_partitions()[-1].end

    def names(self) -> list[str]:
        """Return the names of the partitions with a range."""
        return [partition.name for partition in partitions.list_partitions()]

    def test_partition_is_made_ahead_once(self) -> None:
        before = len(self.names())
        move_sequence(self.first - 10)
        self.assertTrue(partitions.make_next(SOON))
        self.assertFalse(partitions.make_next(SOON))
        self.assertEqual(partitions.list_partitions()[before:], [self.partition(self.first)])
        row = archived("resp_new", self.first + 1)
        self.assertEqual(table_of(row), f"responses_app_logpage_from_{self.first}")
        self.assertEqual(reader.read(row.pk), log_frames(3))

    def partition(self, start: int) -> partitions.Partition:
        """Return the partition of one step from `start`."""
        return partitions.Partition(f"responses_app_logpage_from_{start}", start, start + self.step)

    def test_pages_outside_of_all_ranges_are_in_the_rest(self) -> None:
        row = archived("resp_far", self.first + 5)
        self.assertEqual(table_of(row), "responses_app_logpage_rest")
        self.assertTrue(partitions.make_next(SOON))
        self.assertEqual(partitions.list_partitions()[-1], self.partition(self.first + 6))
        self.assertEqual(table_of(row), "responses_app_logpage_rest")

    def test_new_partition_stores_pages_as_the_table_does(self) -> None:
        move_sequence(self.first - 10)
        partitions.make_next(SOON)
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT attstorage, (SELECT count(*) FROM pg_index WHERE indrelid = attrelid AND indisprimary) FROM pg_attribute"
                " WHERE attrelid = %s::regclass AND attname = 'data'",
                [f"responses_app_logpage_from_{self.first}"],
            )
            self.assertEqual(cursor.fetchone(), ("e", 1))

    def test_partition_of_which_everything_is_due_is_dropped(self) -> None:
        move_sequence(self.first - 10)
        partitions.make_next(SOON)
        old, new = archived("resp_old", self.first + 1), archived("resp_new", self.first + self.step + 1)
        Response.objects.filter(pk=new.pk).update(ended_at=SOON + timedelta(days=1))
        self.assertEqual([one.start for one in partitions.list_due(SOON)], [self.first])
        self.assertEqual(sum(retention.prune("responses", SOON)), 1)
        self.assertNotIn(f"responses_app_logpage_from_{self.first}", self.names())
        self.assertFalse(Response.objects.filter(pk=old.pk).exists())
        self.assertEqual(set(LogPage.objects.values_list("response_id", flat=True)), {new.pk})

    def test_partition_with_a_response_that_stays_is_pruned_by_rows(self) -> None:
        move_sequence(self.first - 10)
        partitions.make_next(SOON)
        archived("resp_old", self.first + 1)
        kept_row = archived("resp_kept")
        archived("resp_next", self.first + self.step + 1)
        Response.objects.filter(uid="resp_kept").update(ended_at=SOON + timedelta(days=1))
        self.assertEqual(partitions.list_due(SOON), [])
        self.assertEqual(sum(retention.prune("responses", SOON)), 2)
        self.assertEqual(table_of(kept_row), f"responses_app_logpage_from_{self.first}")
        self.assertEqual(set(LogPage.objects.values_list("response_id", flat=True)), {kept_row.pk})

    def test_partition_with_a_damaged_response_keeps_its_pages_alone(self) -> None:
        move_sequence(self.first - 10)
        partitions.make_next(SOON)
        archived("resp_old", self.first + 1)
        damaged = archived("resp_damaged")
        archived("resp_next", self.first + self.step + 1)
        fail_deletions()
        with self.assertLogs("responses.batches", "WARNING"):
            self.assertEqual(sum(retention.prune("responses", SOON)), 2)
        self.assertEqual(set(LogPage.objects.values_list("response_id", flat=True)), {damaged.pk})

    def test_partition_with_a_running_response_is_not_due(self) -> None:
        move_sequence(self.first)
        partitions.make_next(SOON)
        stored_response(log_frames(3), "resp_running", ended_at=None)
        archived("resp_next", self.first + self.step + 1)
        self.assertEqual(partitions.list_due(SOON), [])
        self.assertEqual(Event.objects.count(), len(log_frames(3)))


class LockTest(TransactionTestCase):
    """Several connections at a time."""

    def test_table_in_use_is_left_alone(self) -> None:
        before = partitions.list_partitions()
        with psycopg.connect(**place()) as other:
            other.execute("LOCK TABLE responses_app_logpage")
            with self.assertLogs("responses.partitions", "INFO"):
                self.assertFalse(partitions.make_next(SOON))
        self.assertEqual(partitions.list_partitions(), before)
