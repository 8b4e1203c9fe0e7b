"""Replacement of an index: the way back, the end of a failed call, and the progress."""

from __future__ import annotations

from contextlib import redirect_stderr, suppress
from io import StringIO
from unittest import mock

import pytest
from django.contrib.postgres.indexes import HashIndex
from django.db import IntegrityError, connection, models
from django.test import TransactionTestCase

from responses_app.management import index_changes
from responses_app.management.index_changes import IndexChange
from responses_app.models import Response
from tests.support.store.stored_logs import stored_response

pytestmark = pytest.mark.slow

SAME = IndexChange(
    "response",
    models.Index(fields=["error_code"], name="test_error"),
    models.Index(fields=["error_code"], name="test_error", condition=models.Q(log_form=1)),
)
OTHER = IndexChange(
    "response", models.Index(fields=["error_code"], name="test_text"), HashIndex(fields=["error_code"], name="test_hash")
)


class IndexChangeTest(TransactionTestCase):
    """Against the real database."""

    def setUp(self) -> None:
        self.addCleanup(self.run_sql, "DROP INDEX IF EXISTS test_error, test_text, test_hash, test_error_new, test_hash_new")

    def run_sql(self, sql: str) -> None:
        with connection.cursor() as cursor:
            cursor.execute(sql)

    def apply(self, change: IndexChange) -> None:
        with connection.schema_editor(atomic=False) as editor:
            change.apply(Response, editor)

    def make_old(self, change: IndexChange) -> None:
        with connection.schema_editor() as editor:
            editor.add_index(Response, change.old)

    def indexes(self) -> dict[str, str]:
        """Return the definitions of the test's indexes by name."""
        with connection.cursor() as cursor:
            cursor.execute(r"SELECT indexname, indexdef FROM pg_indexes WHERE indexname LIKE 'test\_%' ORDER BY 1")
            return dict(cursor.fetchall())

    def test_index_is_replaced_and_brought_back(self) -> None:
        for change, kind in ((SAME, "WHERE"), (OTHER, "USING hash")):
            with self.subTest(name=change.new.name):
                self.make_old(change)
                self.apply(change)
                ((name, definition),) = self.indexes().items()
                self.assertEqual(name, change.new.name)
                self.assertIn(kind, definition)
                self.apply(change.reversed())
                ((name, definition),) = self.indexes().items()
                self.assertEqual(name, change.old.name)
                self.assertNotIn(kind, definition)
                self.run_sql(f"DROP INDEX {name}")

    def test_call_continues_after_a_failure(self) -> None:
        for uid in ("resp_1", "resp_2"):
            stored_response((), uid)
        steps = (
            # The build was broken off, the names were not exchanged, the old index was not dropped.
            ("CREATE UNIQUE INDEX CONCURRENTLY test_error_new ON responses_app_response (error_code)",),
            ("CREATE INDEX test_error_new ON responses_app_response (error_code) WHERE log_form = 1",),
            (
                "ALTER INDEX test_error RENAME TO test_error_old",
                "CREATE INDEX test_error ON responses_app_response (error_code) WHERE log_form = 1",
            ),
        )
        for number, statements in enumerate(steps):
            with self.subTest(step=number):
                self.make_old(SAME)
                for statement in statements:
                    with suppress(IntegrityError):
                        self.run_sql(statement)
                self.assertEqual(len(self.indexes()), 2)
                self.apply(SAME)
                self.assertEqual(list(self.indexes()), ["test_error"])
                self.assertIn("(error_code) WHERE", self.indexes()["test_error"])
                self.run_sql("DROP INDEX test_error")

    def test_long_build_shows_its_progress(self) -> None:
        self.make_old(OTHER)
        shown = StringIO()
        with (
            mock.patch.object(index_changes, "POLL_S", 0.0),
            mock.patch.object(index_changes, "PROGRESS_SQL", "SELECT 'building index', 7, 9 WHERE %s > 0"),
            mock.patch("responses_app.management.progress.FILE_EVERY_S", 0.0),
            redirect_stderr(shown),
        ):
            self.apply(OTHER)
        self.assertIn("index test_hash, building index: 7 of 9", shown.getvalue())
        self.assertTrue(shown.getvalue().endswith("index test_hash: built\n"))
