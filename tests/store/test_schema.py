"""Migrations match the models, and the database enforces the numbers of a log."""

from __future__ import annotations

from django.core.management import call_command
from django.db import IntegrityError, connection, transaction
from django.test import TestCase

from responses_app.models import Event
from tests.support.store.log_records import log


class SchemaTest(TestCase):
    """Against the real database."""

    def test_no_migration_is_missing(self) -> None:
        call_command("makemigrations", "--check", "--dry-run", verbosity=0)

    def test_the_statements_of_the_migration_beyond_django_are_in_the_database(self) -> None:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT (SELECT count(*) FROM pg_trigger WHERE tgname = 'event_contiguous'), (SELECT attstorage FROM pg_attribute"
                " WHERE attrelid = 'responses_app_logpage'::regclass AND attname = 'data')"
            )
            self.assertEqual(cursor.fetchone(), (1, "e"))

    def test_no_text_column_has_a_second_index(self) -> None:
        """Django makes one for LIKE. A migration that adds a text column with an index drops it, as 0032 does."""
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT indexname FROM pg_indexes WHERE schemaname = current_schema()"
                r" AND tablename LIKE 'responses\_app\_%' AND indexname LIKE '%\_like'"
            )
            self.assertEqual(cursor.fetchall(), [])

    def test_a_number_is_given_once_per_response(self) -> None:
        row = log().row
        row.save()
        Event.objects.create(response=row, number=0, type="x", data="{}")
        with self.assertRaises(IntegrityError), transaction.atomic():
            Event.objects.create(response=row, number=0, type="x", data="{}")
