"""Clock of a host beside the clock of the database, and a folder of files that cannot be written to."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest.mock import patch

import pytest
from django.conf import settings
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from django.test import override_settings

from responses_app.server.bootstrap import shared_resources

BACKEND = "django.core.files.storage.FileSystemStorage"


@pytest.mark.django_db
def test_clock_ahead_of_the_database_is_named() -> None:
    assert list(shared_resources.warnings()) == []
    with patch.object(shared_resources, "datetime") as clock:
        clock.now.side_effect = lambda _: datetime.now(UTC) + timedelta(hours=1)
        assert any("differs from the clock of Postgres by +3600 s" in sentence for sentence in shared_resources.warnings())


@pytest.mark.django_db
def test_database_of_a_later_version_is_named_and_those_of_other_apps_are_not() -> None:
    recorder = MigrationRecorder(connection)
    recorder.record_applied("other_app", "9999_future")
    assert list(shared_resources.warnings()) == []
    recorder.record_applied("responses_app", "9999_future")
    (sentence,) = shared_resources.warnings()
    assert "migrations of a later version, such as responses_app.9999_future. Start that version" in sentence


@pytest.mark.django_db
def test_folder_of_files_that_cannot_be_made_is_named_with_its_setting(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    entry = {"BACKEND": BACKEND, "OPTIONS": {"location": tmp_path / "file" / "files"}}
    with override_settings(STORAGES={**settings.STORAGES, "files": entry}):
        (sentence,) = shared_resources.warnings()
        assert "cannot be written to (Not a directory)" in sentence
        assert "Set RESPONSES_FILE_STORAGE" in sentence
