"""Storage report: sizes of tables and projects, samples, rates and growth; the page and the checks that show them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest import mock

from django.contrib.auth.models import User
from django.db import connection
from django.test import SimpleTestCase, TransactionTestCase, override_settings
from prometheus_client import CollectorRegistry

from responses_app.models import LogForm, StorageSample, StoredFile
from responses_app.observability.prometheus import PrometheusObserver
from responses_app.server.doctor import storage
from responses_app.server.doctor.findings import FAILED, OK, WARNING, Check, FindingStatus
from responses_app.store.storage_report import samples, sizes
from responses_app.store.storage_report.samples import calculate_rates, read_sample, recent_samples, take_sample
from responses_app.web import storage as storage_page
from tests.support.web.page_case import WebCase, made

NOW = datetime.now(UTC)
DAY = 86_400
GIB = 1024**3


def sample(age_s: float, **fields: int | None) -> StorageSample:
    """Build a sample taken `age_s` seconds ago."""
    values = {"database_bytes": 10 * GIB, "free_bytes": GIB, "created": 0, "deleted": 0, "unarchived": 0, "waiting": 0}
    return StorageSample(taken_at=NOW - timedelta(seconds=age_s), **{**values, "oldest_wait_s": 0, **fields})


class RatesTest(SimpleTestCase):
    """Without a database."""

    def test_rates_are_those_of_the_last_minutes(self) -> None:
        before = [sample(DAY, created=1), sample(100, created=1_000, deleted=10, unarchived=500)]
        rates = calculate_rates(before, sample(0, created=3_000, deleted=210, unarchived=1_500))
        self.assertEqual((rates.created, rates.archived, rates.deleted), (20, 10, 2))

    def test_growth_tells_when_the_disk_is_full(self) -> None:
        rates = calculate_rates([sample(2 * DAY, database_bytes=8 * GIB), sample(60)], sample(0, free_bytes=4 * GIB))
        self.assertEqual(rates.bytes_per_day, GIB)
        self.assertEqual(rates.full_at, NOW + timedelta(days=4))

    def test_database_that_shrinks_fills_no_disk(self) -> None:
        rates = calculate_rates([sample(DAY, database_bytes=11 * GIB)], sample(0))
        self.assertEqual((rates.bytes_per_day, rates.full_at), (-GIB, None))

    def test_counters_that_a_crash_has_reset_give_no_rates(self) -> None:
        rates = calculate_rates([sample(DAY, database_bytes=9 * GIB, created=500)], sample(0, created=3, free_bytes=None))
        self.assertEqual((rates.created, rates.archived, rates.deleted, rates.full_at), (None, None, None, None))
        self.assertEqual(rates.bytes_per_day, GIB)

    def test_nothing_is_known_without_samples(self) -> None:
        self.assertEqual(calculate_rates([], sample(0)), samples.StorageRates())
        self.assertIsNone(calculate_rates([sample(600)], sample(0)).bytes_per_day)


class CommittedRowsTest(TransactionTestCase):
    """Against the real database, with committed rows."""

    def test_rows_are_counted_before_the_first_analyze(self) -> None:
        for number in range(3):
            made(f"resp_{number}")
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_stat_force_next_flush()")
        (rows,) = [table.rows for table in sizes.table_sizes() if table.name == "responses"]
        self.assertGreaterEqual(rows, 3)


class StorageReportTest(WebCase):
    """Against the real database."""

    def test_ended_logs_wait_from_the_time_of_archiving_on(self) -> None:
        made("resp_1", ended_at=NOW - timedelta(seconds=400))
        made("resp_2", ended_at=NOW - timedelta(seconds=80))
        made("resp_3", ended_at=NOW - timedelta(seconds=10))
        made("resp_4", ended_at=NOW - timedelta(seconds=900), log_form=LogForm.PAGES)
        with override_settings(RESPONSES_SEAL_AFTER=timedelta(seconds=60)):
            read = read_sample(NOW)
        self.assertEqual((read.unarchived, read.waiting, read.oldest_wait_s), (3, 2, 340))
        with override_settings(RESPONSES_SEAL_AFTER=None):
            self.assertEqual(read_sample(NOW).waiting, 0)

    def test_sample_is_taken_once_a_minute(self) -> None:
        self.assertIsNotNone(take_sample(NOW))
        self.assertIsNone(take_sample(NOW + timedelta(seconds=59)))
        self.assertIsNotNone(take_sample(NOW + timedelta(seconds=60)))
        self.assertEqual(len(recent_samples(NOW + timedelta(seconds=60))), 3)

    def test_late_archiving_is_logged(self) -> None:
        made("resp_1", ended_at=NOW - timedelta(hours=1))
        with self.assertLogs("responses.storage", "WARNING") as log:
            take_sample(NOW)
        self.assertIn("1 logs wait for archiving, the oldest for", log.output[0])

    def test_samples_from_before_the_clock_was_set_back_are_deleted(self) -> None:
        take_sample(NOW + timedelta(days=1))
        self.assertIsNotNone(take_sample(NOW))
        self.assertEqual(StorageSample.objects.get().taken_at, NOW)

    def test_old_samples_are_thinned_to_hours(self) -> None:
        hour = (NOW - timedelta(days=3)).replace(minute=0)
        for time in (hour, hour + timedelta(minutes=1), NOW - timedelta(days=500), NOW - timedelta(hours=1)):
            StorageSample(**{**_fields(sample(0)), "taken_at": time}).save(force_insert=True)
        self.assertEqual(samples.prune(NOW), 2)
        self.assertEqual(sorted(StorageSample.objects.values_list("taken_at", flat=True)), [hour, NOW - timedelta(hours=1)])

    def test_partitions_count_for_their_table(self) -> None:
        tables = {table.name: table for table in sizes.table_sizes()}
        self.assertIn("log pages", tables)
        self.assertFalse([name for name in tables if name.startswith("logpage_")])
        self.assertGreater(tables["responses"].index_bytes, 0)
        self.assertIn(sizes.OTHERS, tables)

    def test_projects_share_the_database_by_their_responses(self) -> None:
        for number in range(4):
            made(f"resp_{number}", project="large" if number else "small")
        StoredFile.objects.create(name="f", project="small", bytes=77)
        large, small = sizes.project_sizes(1000)
        self.assertEqual((large.name, round(large.percent), small.name, small.file_bytes), ("large", 75, "small", 77))
        self.assertEqual((round(large.database_bytes, -1), round(small.database_bytes, -1)), (750, 250))

    def test_page_shows_the_report_to_superusers_alone(self) -> None:
        made("resp_1", project="<p>", ended_at=NOW - timedelta(hours=1))
        sample(DAY, database_bytes=0).save(force_insert=True)
        page = self.page("/storage")
        for text in ("1 log, the oldest for", "Late", "Log pages", "&lt;p&gt;", "Responses are kept for ever"):
            self.assertIn(text, page)
        self.client.force_login(User.objects.create_user("member"))
        self.assertEqual(self.client.get("/storage").status_code, 403)
        self.assertNotIn("/storage", self.client.get("/keys").content.decode())

    def test_page_names_no_time_for_a_full_disk_before_growth_and_free_space_are_known(self) -> None:
        self.assertIn("<dt>Disk full on</dt><dd>–<", self.page("/storage"))
        sample(DAY, database_bytes=8 * 1024 * GIB).save(force_insert=True)
        with mock.patch.object(samples, "free_bytes", return_value=None):
            self.assertIn("<dt>Disk full on</dt><dd>–<", self.page("/storage"))
        with mock.patch.object(samples, "free_bytes", return_value=GIB):
            self.assertIn("<dt>Disk full on</dt><dd>not within a year<", self.page("/storage"))

    def test_observers_get_the_latest_values(self) -> None:
        sample(DAY, database_bytes=9 * GIB).save(force_insert=True)
        sample(1, waiting=3).save(force_insert=True)
        registry = CollectorRegistry()
        PrometheusObserver([], registry).storage_measured(samples.latest_values(NOW))
        self.assertEqual(registry.get_sample_value("verbatim_logs_waiting"), 3)
        self.assertEqual(registry.get_sample_value("verbatim_storage_bytes", {"kind": "free"}), GIB)

    def test_doctor_names_late_archiving_and_a_disk_that_is_soon_full(self) -> None:
        self.assertEqual([self.only(storage.check_archiving)[0], self.only(storage.check_growth)[0]], [OK, OK])
        made("resp_1", ended_at=NOW - timedelta(hours=1))
        status, message = self.only(storage.check_archiving)
        self.assertEqual((status, "1 logs wait" in message), (WARNING, True))
        first = sample(DAY, database_bytes=0)
        first.save(force_insert=True)
        self.assertIn("grows by", self.only(storage.check_growth)[1])
        with mock.patch.object(samples, "free_bytes", return_value=sizes.database_bytes()):
            status, message = self.only(storage.check_growth)
        self.assertEqual((status, "its disk is full on" in message), (FAILED, True))

    def test_doctor_names_rates_and_the_largest_tables_and_projects(self) -> None:
        self.assertIn("some minutes after", self.only(storage.report_rates)[1])
        latest = read_sample(NOW)
        sample(100, created=latest.created - 500, deleted=latest.deleted, unarchived=latest.unarchived).save(force_insert=True)
        with mock.patch.object(storage, "database_time", return_value=NOW):
            self.assertIn("5.0 responses a second are created, 5.0 archived, 0.0 deleted", self.only(storage.report_rates)[1])
        made("resp_1", project="large")
        StoredFile.objects.create(name="f", project="large", bytes=3 * GIB)
        self.assertRegex(self.only(storage.report_tables)[1], r"^[\w ]+ \d+\.\d\d GiB, ")
        self.assertRegex(self.only(storage.report_projects)[1], r"^large \d+\.\d\d GiB and 3.00 GiB of files$")

    def test_doctor_and_page_measure_waits_by_the_clock_of_the_database(self) -> None:
        # The clock of this host is an hour behind that of the database.
        made("resp_1", ended_at=NOW)
        with mock.patch.object(storage, "database_time", return_value=NOW + timedelta(hours=1)):
            status, message = self.only(storage.check_archiving)
        self.assertEqual((status, "1 logs wait" in message), (WARNING, True))
        with mock.patch.object(storage_page, "database_time", return_value=NOW + timedelta(hours=1)):
            self.assertIn("1 log, the oldest for", self.page("/storage"))

    def test_free_space_is_unknown_where_postgres_hides_its_folder(self) -> None:
        # The role of the tests is no superuser.
        with mock.patch.object(sizes, "data_dir", return_value=Path("/elsewhere")):
            self.assertIsNone(sizes.free_bytes())

    def only(self, check: Check) -> tuple[FindingStatus, str]:
        """Return the only finding of a check."""
        (finding,) = check()
        return finding


def _fields(row: StorageSample) -> dict[str, object]:
    return {field.attname: getattr(row, field.attname) for field in row._meta.fields}
