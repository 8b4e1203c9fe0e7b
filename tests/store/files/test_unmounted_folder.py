"""Folder of stored files whose disk is unmounted while the server runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.test import override_settings

from responses_app.store.files import storage
from responses_app.store.files.storage import StorageUnavailable
from tests.support.store.file_storage import file_storage_settings


def save(folder: Path, name: str) -> None:
    file = folder / "upload"
    file.write_bytes(b"bytes")
    storage.save(file, name)


def assert_refused(folder: Path) -> None:
    """Assert that no operation takes the folder for the storage."""
    with pytest.raises(StorageUnavailable, match="mount its disk"):
        save(folder, "new")
    with pytest.raises(StorageUnavailable, match="mount its disk"):
        storage.read("old", 10)
    with pytest.raises(StorageUnavailable, match="mount its disk"):
        storage.delete("old")


def test_folder_that_has_vanished_is_not_made_again(tmp_path: Path) -> None:
    files, away = tmp_path / "files", tmp_path / "away"
    files.mkdir()
    with override_settings(**file_storage_settings(tmp_path)):
        save(tmp_path, "old")
        files.rename(away)
        assert_refused(tmp_path)
        assert not files.exists()
        away.rename(files)
        assert storage.read("old", 10) == b"bytes"


def test_empty_mount_point_takes_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "files").mkdir()
    mounted = [True]
    monkeypatch.setattr(Path, "is_mount", lambda _path: mounted[0])
    with override_settings(**file_storage_settings(tmp_path)):
        save(tmp_path, "old")
        mounted[0] = False
        assert_refused(tmp_path)
        assert [path.name for path in (tmp_path / "files").iterdir()] == ["old"]
        mounted[0] = True
        assert storage.read("old", 10) == b"bytes"


def test_folder_is_made_for_the_first_file(tmp_path: Path) -> None:
    with override_settings(**file_storage_settings(tmp_path)):
        save(tmp_path, "old")
        assert storage.read("old", 10) == b"bytes"
