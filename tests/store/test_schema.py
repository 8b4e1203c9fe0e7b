"""The migrations say what the models say, and the log's numbers are the database's business."""

from __future__ import annotations

from django.core.management import call_command
from django.db import IntegrityError, transaction
from django.test import TestCase

from responses_app.models import Event
from tests.store.test_recorder import log


class SchemaTest(TestCase):
    """Against the real database."""

    def test_no_migration_is_missing(self) -> None:
        call_command("makemigrations", "--check", "--dry-run", verbosity=0)

    def test_a_number_is_given_once_per_response(self) -> None:
        row = log().row
        row.save()
        Event.objects.create(response=row, number=0, type="x", data="{}")
        with self.assertRaises(IntegrityError), transaction.atomic():
            Event.objects.create(response=row, number=0, type="x", data="{}")
