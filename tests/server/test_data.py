"""The data folder and what is kept in it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from responses_app.server.data import InUse, keep, lock
from responses_app.server.secret import secret_key


def test_the_second_to_ask_learns_who_was_first(tmp_path: Path) -> None:
    held = lock(tmp_path / "new")
    with pytest.raises(InUse, match=f"process {os.getpid()}"):
        lock(tmp_path / "new")
    os.close(held)
    os.close(lock(tmp_path / "new"))


def test_a_secret_is_made_once_for_our_eyes_only(tmp_path: Path) -> None:
    secret = secret_key(tmp_path / "new")
    assert len(secret) >= 50
    assert secret_key(tmp_path / "new") == secret
    assert (tmp_path / "new" / "secret_key").stat().st_mode & 0o777 == 0o600
    assert secret_key(tmp_path / "other") != secret


def test_an_empty_file_holds_no_secret(tmp_path: Path) -> None:
    (tmp_path / "key").touch(mode=0o644)
    assert keep(tmp_path / "key", "made") == "made"
    assert keep(tmp_path / "key", "again") == "made"
    assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600
