"""Work folder of a container without a sandbox: files that were stored and are gone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from responses_app.sandbox.runner.work_folder import WorkFolder


@pytest.fixture
def work(tmp_path: Path) -> WorkFolder:
    (tmp_path / "data").mkdir()
    folder = WorkFolder(tmp_path)
    for path in ("a/b/c", "a/d", "e"):
        os.close(folder.create_file(path))
    return folder


def test_deleted_files_are_named_once(work: WorkFolder) -> None:
    data = work.root / "data"
    (data / "a" / "b" / "c").unlink()
    (data / "e").unlink()
    (data / "e").mkdir()
    assert work.take_deleted() == ("/mnt/data/a/b/c", "/mnt/data/e")
    assert work.take_deleted() == ()


def test_files_behind_a_link_are_deleted(work: WorkFolder) -> None:
    data = work.root / "data"
    (data / "a").rename(data / "moved")
    (data / "a").symlink_to("moved")
    assert work.take_deleted() == ("/mnt/data/a/b/c", "/mnt/data/a/d")


def test_error_that_leaves_open_whether_there_is_a_file_deletes_nothing(
    work: WorkFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(path: object) -> os.stat_result:
        raise OSError(24, "Too many open files")

    with monkeypatch.context() as patched:
        patched.setattr(os, "lstat", fail)
        assert work.take_deleted() == ()


def test_files_are_added_while_deleted_files_are_looked_for(work: WorkFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    lstat, added = os.lstat, list[str]()

    def add_file(path: str) -> os.stat_result:
        if len(added) < 100:
            added.append(f"new{len(added)}")
            os.close(work.create_file(added[-1]))
        return lstat(path)

    with monkeypatch.context() as patched:
        patched.setattr(os, "lstat", add_file)
        assert work.take_deleted() == ()
    (work.root / "data" / added[0]).unlink()
    assert work.take_deleted() == (f"/mnt/data/{added[0]}",)
