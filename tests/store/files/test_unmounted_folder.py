"""Folder of stored files whose disk is unmounted while the server runs, or when it starts."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from unittest.mock import patch
from uuid import uuid4

import pytest
from django.core.files.storage import FileSystemStorage
from django.test import override_settings

from responses_app.models import File
from responses_app.server.doctor.findings import FAILED, OK
from responses_app.server.doctor.host import check_storage
from responses_app.store.cluster import leases
from responses_app.store.files import files as uploads
from responses_app.store.files import pending, storage, storage_check
from responses_app.store.files.storage import StorageUnavailable
from responses_app.store.files.storage_check import storage_problem
from responses_app.wire.api_errors import to_api_error
from tests.support.store.file_storage import file_storage_settings


def save(folder: Path, name: str) -> None:
    file = folder / "upload"
    file.write_bytes(b"bytes")
    storage.save(file, name)


def new_file(name: str) -> None:
    """Insert the row of an uploaded file."""
    File.objects.create(
        uid=f"file-{name}",
        project="p",
        filename="a.txt",
        purpose="user_data",
        bytes=5,
        created_at=datetime.now(UTC),
        storage_name=name,
        sha256="",
    )


@contextmanager
def new_process() -> Iterator[None]:
    """Forget the folders that this process has used."""
    with patch.object(storage, "_expected", {}):
        yield


def assert_refused(folder: Path) -> None:
    """Assert that no operation takes the folder for the storage."""
    with pytest.raises(StorageUnavailable, match="mount its disk"):
        save(folder, "new")
    with pytest.raises(StorageUnavailable, match="mount its disk"):
        storage.read("old", 10)
    with pytest.raises(StorageUnavailable, match="mount its disk"):
        storage.delete("old")


@pytest.mark.django_db
def test_folder_that_has_vanished_is_not_made_again(tmp_path: Path) -> None:
    files, away = tmp_path / "files", tmp_path / "away"
    files.mkdir()
    with override_settings(**file_storage_settings(tmp_path)):
        assert storage_problem() is None
        save(tmp_path, "old")
        files.rename(away)
        assert_refused(tmp_path)
        assert "mount its disk" in str(storage_problem())
        assert not files.exists()
        away.rename(files)
        assert storage.read("old", 10) == b"bytes"


@pytest.mark.django_db
def test_empty_mount_point_takes_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "files").mkdir()
    mounted = [True]
    monkeypatch.setattr(Path, "is_mount", lambda _path: mounted[0])
    with override_settings(**file_storage_settings(tmp_path)):
        assert storage_problem() is None
        save(tmp_path, "old")
        mounted[0] = False
        assert_refused(tmp_path)
        assert [path.name for path in (tmp_path / "files").glob("[!.]*")] == ["old"]
        mounted[0] = True
        assert storage.read("old", 10) == b"bytes"


def test_folder_is_made_for_the_first_file(tmp_path: Path) -> None:
    with override_settings(**file_storage_settings(tmp_path)):
        save(tmp_path, "old")
        assert storage.read("old", 10) == b"bytes"


@pytest.mark.django_db
def test_mount_point_at_a_start_is_refused_until_the_disk_is_mounted(tmp_path: Path) -> None:
    files, disk = tmp_path / "files", tmp_path / "disk"
    with override_settings(**file_storage_settings(tmp_path)):
        assert storage_problem() is None
        save(tmp_path, "old")
    new_file("old")
    files.rename(disk)
    files.mkdir()
    with new_process(), override_settings(**file_storage_settings(tmp_path)):
        assert f"touch {files / storage.MARKER}" in str(storage_problem())
        assert_refused(tmp_path)
        assert list(files.iterdir()) == []
        files.rmdir()
        disk.rename(files)
        assert storage.read("old", 10) == b"bytes"
        assert storage_problem() is None


@pytest.mark.django_db
def test_folder_of_an_earlier_version_is_marked_by_its_files(tmp_path: Path) -> None:
    with override_settings(**file_storage_settings(tmp_path)):
        save(tmp_path, "old")
        new_file("old")
        new_file("deleted after the backup")
        assert storage_problem() is None
        assert (tmp_path / "files" / storage.MARKER).exists()


@pytest.mark.django_db
def test_folder_is_used_without_its_files_when_an_operator_marks_it(tmp_path: Path) -> None:
    new_file("lost")
    with override_settings(**file_storage_settings(tmp_path)):
        assert "mount its disk" in str(storage_problem())
        assert not (tmp_path / "files").exists()
        (tmp_path / "files").mkdir()
        (tmp_path / "files" / storage.MARKER).touch()
        assert storage_problem() is None
        save(tmp_path, "new")


@pytest.mark.django_db
@pytest.mark.parametrize("has_files", [False, True])
def test_file_in_the_place_of_the_folder_is_named_without_the_advice_to_mark_it(tmp_path: Path, has_files: bool) -> None:
    (tmp_path / "files").write_text("no folder")
    if has_files:
        new_file("old")
    with new_process(), override_settings(**file_storage_settings(tmp_path)):
        for _ in range(2):
            problem = str(storage_problem())
            assert f"{tmp_path / 'files'} is not a folder: name another in RESPONSES_FILE_STORAGE" in problem
            assert "touch" not in problem
        with pytest.raises(StorageUnavailable, match="is not a folder"):
            save(tmp_path, "new")
        leases.heartbeat(uuid4(), "host-a:1", [])
        status, message = next(iter(check_storage()))
        assert (status, "is not a folder" in message, "mount its disk" in message) == (FAILED, True, False)


@pytest.mark.django_db
def test_doctor_names_a_folder_without_the_marker_of_the_server_that_runs(tmp_path: Path) -> None:
    with override_settings(**file_storage_settings(tmp_path)):
        assert next(iter(check_storage()))[0] == OK
        leases.heartbeat(uuid4(), "host-a:1", [])
        status, message = next(iter(check_storage()))
        assert (status, "mount its disk" in message) == (FAILED, True)
        assert list((tmp_path / "files").iterdir()) == []
        assert storage_problem() is None
        assert next(iter(check_storage()))[0] == OK


@pytest.mark.django_db(transaction=True)
def test_file_that_is_deleted_while_the_folder_cannot_be_written_is_cleaned_up_later(tmp_path: Path) -> None:
    with override_settings(**file_storage_settings(tmp_path)):
        save(tmp_path, "old")
        new_file("old")
        with patch.object(FileSystemStorage, "delete", side_effect=OSError(errno.EROFS, "read-only")):
            uploads.delete(File.objects.get())
        assert not File.objects.exists()
        assert storage.exists("old")
        assert list(pending.clean_up()) == [1]
        assert not storage.exists("old")


@pytest.mark.django_db(transaction=True)
def test_file_that_a_command_deletes_while_its_disk_is_not_mounted_is_cleaned_up_later(tmp_path: Path) -> None:
    folder, disk = tmp_path / "files", tmp_path / "disk"
    with override_settings(**file_storage_settings(tmp_path)):
        assert storage_problem() is None
        save(tmp_path, "old")
        new_file("old")
        folder.rename(disk)
        folder.mkdir()
        with new_process():
            uploads.delete(File.objects.get())
        assert not File.objects.exists()
        folder.rmdir()
        disk.rename(folder)
        assert storage.exists("old")
        assert list(pending.clean_up()) == [1]
        assert not storage.exists("old")


@pytest.mark.django_db
def test_folder_that_cannot_be_written_has_the_same_sentence_at_each_check(tmp_path: Path) -> None:
    errors = [PermissionError(errno.EACCES, "Permission denied", f"tmp{number}") for number in range(2)]
    with (
        override_settings(**file_storage_settings(tmp_path)),
        patch.object(storage_check, "TemporaryFile", side_effect=errors),
    ):
        first = storage_problem()
        assert f"{tmp_path / 'files'} cannot be written to (Permission denied)" in str(first)
        assert storage_problem() == first


def test_full_storage_is_a_status_of_its_own(tmp_path: Path) -> None:
    with override_settings(**file_storage_settings(tmp_path)):
        for number, status in ((errno.ENOSPC, 507), (errno.EDQUOT, 507), (errno.EIO, 503)):
            with (
                patch.object(FileSystemStorage, "_save", side_effect=OSError(number, "broken")),
                pytest.raises(StorageUnavailable) as raised,
            ):
                save(tmp_path, "new")
            assert to_api_error(raised.value, "req_1", "").status == status
