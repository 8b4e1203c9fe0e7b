"""The data folder and what is kept in it."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from django.core.exceptions import ImproperlyConfigured

from responses_app.installation.data_dir import (
    FILES,
    FOLDERS,
    InUse,
    UnusableFolder,
    load_or_create,
    lock,
    note_end,
    open_log,
    running_server,
)
from responses_app.installation.secret_key import MIN_LENGTH, check_secret_key, secret_key


def test_the_second_to_ask_learns_who_was_first(tmp_path: Path) -> None:
    held = lock(tmp_path / "new")
    with pytest.raises(InUse, match=f"process {os.getpid()}"):
        lock(tmp_path / "new")
    note_end(held)
    with pytest.raises(InUse, match=f"process {os.getpid()}") as refused:
        lock(tmp_path / "new")
    assert refused.value.is_ending
    assert running_server(tmp_path / "new") == str(os.getpid())
    os.close(held)
    os.close(lock(tmp_path / "new"))


@pytest.mark.parametrize("name", FOLDERS)
def test_file_in_place_of_a_folder_is_named_with_the_remedy(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    with pytest.raises(UnusableFolder, match=rf"/{name} is no folder, but .*: move it away, or set RESPONSES_DATA_DIR"):
        lock(tmp_path)


@pytest.mark.parametrize("name", FILES)
def test_folder_in_place_of_a_file_is_named_with_the_remedy(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    with pytest.raises(UnusableFolder, match=rf"/{name} is a folder, but .*: move it away, or set RESPONSES_DATA_DIR"):
        lock(tmp_path)


@pytest.mark.parametrize("name", ["api_key", "logs", "metrics"])
def test_entry_of_another_user_is_named_with_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    (tmp_path / name).mkdir(0o700) if name in FOLDERS else (tmp_path / name).touch(0o600)
    # Root, who may run the tests, has all rights.
    monkeypatch.setattr(os, "access", lambda path, mode: path != tmp_path / name)
    with pytest.raises(UnusableFolder, match=rf"/{name} has the mode 0.00: .*chmod -R u\+rwX {tmp_path}"):
        lock(tmp_path)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(UnusableFolder, match=rf"/{name} belongs to another user: .*chown -R USER {tmp_path}"):
        lock(tmp_path)


def test_data_on_a_read_only_file_system_are_not_called_those_of_another_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "logs").mkdir()
    monkeypatch.setattr(os, "access", lambda _path, _mode: False)
    monkeypatch.setattr(os, "statvfs", lambda _path: SimpleNamespace(f_flag=os.ST_RDONLY))
    with pytest.raises(UnusableFolder, match="/logs is on a read-only file system: mount it for writing, or set"):
        lock(tmp_path)


def test_running_server_is_found_by_its_lock(tmp_path: Path) -> None:
    assert running_server(tmp_path / "none") is None
    held = lock(tmp_path)
    assert running_server(tmp_path) == str(os.getpid())
    os.close(held)
    assert running_server(tmp_path) is None


def test_a_secret_is_made_once_for_our_eyes_only(tmp_path: Path) -> None:
    secret = secret_key(tmp_path / "new")
    assert len(secret) >= 50
    assert secret_key(tmp_path / "new") == secret
    assert (tmp_path / "new" / "secret_key").stat().st_mode & 0o777 == 0o600
    assert secret_key(tmp_path / "other") != secret


def test_an_empty_file_holds_no_secret(tmp_path: Path) -> None:
    (tmp_path / "key").touch(mode=0o644)
    assert load_or_create(tmp_path / "key", "made") == "made"
    assert load_or_create(tmp_path / "key", "again") == "made"
    assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600


def test_a_short_secret_key_is_refused_without_being_repeated() -> None:
    with pytest.raises(ImproperlyConfigured, match=r"SECRET_KEY must have at least 32 characters; .*token_urlsafe") as refused:
        check_secret_key("x7" * 15 + "y")
    assert "x7" not in str(refused.value)
    assert check_secret_key("x" * MIN_LENGTH) == "x" * MIN_LENGTH
    assert check_secret_key("") == "", "none is given: one is made"


def test_a_secret_key_that_is_made_is_long_enough(tmp_path: Path) -> None:
    assert check_secret_key(secret_key(tmp_path))


def test_a_damaged_secret_key_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secret_key").write_text("abc\n")
    with pytest.raises(ImproperlyConfigured, match="secret_key has fewer than 32 characters: put the file of a backup"):
        secret_key(tmp_path)


def test_a_new_folder_is_closed_to_others_and_an_existing_one_keeps_its_mode(tmp_path: Path) -> None:
    os.close(lock(tmp_path / "new"))
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700
    (tmp_path / "old").mkdir()
    (tmp_path / "old").chmod(0o750)
    os.close(lock(tmp_path / "old"))
    assert (tmp_path / "old").stat().st_mode & 0o777 == 0o750


def test_a_log_is_closed_to_others_even_if_it_was_open(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "a.log"
    os.close(open_log(log))
    assert log.stat().st_mode & 0o777 == 0o600
    log.chmod(0o644)
    with os.fdopen(open_log(log, os.O_APPEND), "w") as file:
        file.write("line")
    assert log.stat().st_mode & 0o777 == 0o600
