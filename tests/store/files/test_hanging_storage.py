"""Storage of files whose calls hang, as those of a network folder: callers go on after a limit, and the calls end later."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from django.core.files.storage import FileSystemStorage
from django.test import override_settings

from responses_app.store.files import pending, quota, storage, storage_calls, storage_check
from responses_app.store.files.storage import StorageUnavailable
from responses_app.store.files.storage_check import storage_problem
from tests.support.store.file_storage import file_storage_settings
from tests.support.waiting import eventually, wait_until

LIMITS: dict[str, Any] = {"ANSWER_LIMIT_S": 0.05, "SAVE_LIMIT_S": 0.05, "OVERDUE_LIMIT_S": 0.05}


class StorageGate:
    """StorageGate at which calls of the storage wait while it is closed. Their limits are short then."""

    def __init__(self) -> None:
        self._is_open = threading.Event()
        self._is_open.set()
        self._limits = patch.multiple(storage_calls, **LIMITS)
        self.waiting = 0

    def __call__(self) -> None:
        self.waiting += 1
        self._is_open.wait()
        self.waiting -= 1

    def close(self) -> None:
        """Let calls wait."""
        self._is_open.clear()
        self._limits.start()

    def open(self) -> None:
        """Let calls go on, and wait until they have ended."""
        if not self._is_open.is_set():
            self._limits.stop()
            self._is_open.set()
        wait_until(lambda: not self.waiting, limit_s=30)


@pytest.fixture
def gate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StorageGate]:
    """The gate of a storage in a folder with the file `old`."""
    gate = StorageGate()
    for name in ("exists", "delete", "_open", "_save"):
        method = getattr(FileSystemStorage, name)

        def gated(*args: Any, method: Any = method) -> Any:
            gate()
            return method(*args)

        monkeypatch.setattr(FileSystemStorage, name, gated)
    with override_settings(**file_storage_settings(tmp_path)):
        save(tmp_path, "old")
        (tmp_path / "files" / storage.MARKER).touch()
        gate.close()
        try:
            yield gate
        finally:
            gate.open()


def save(folder: Path, name: str) -> None:
    file = folder / name
    file.write_bytes(b"bytes")
    storage.save(file, name)


def test_calls_of_a_storage_that_hangs_end_and_work_again_later(gate: StorageGate) -> None:
    with patch.object(storage_calls, "READ_LIMIT_S", 0.05), pytest.raises(StorageUnavailable, match="no answer in time"):
        storage.read("old", 10)
    with pytest.raises(StorageUnavailable, match="no answer in time"):
        storage.exists("old")
    gate.open()
    assert storage.read("old", 10) == b"bytes"


def test_calls_that_hang_have_a_bounded_number_of_threads(gate: StorageGate) -> None:
    for _ in range(2 * storage_calls.THREADS):
        with pytest.raises(StorageUnavailable):
            storage.exists("old")
    assert gate.waiting <= storage_calls.THREADS
    assert sum(thread.name == "storage" for thread in threading.enumerate()) == storage_calls.THREADS


def test_reads_that_hang_leave_the_threads_of_asyncio_to_others(gate: StorageGate) -> None:
    async def main() -> None:
        reads = [asyncio.create_task(storage.read_async("old", 10)) for _ in range(100)]
        await eventually(lambda: gate.waiting > 0)
        assert await asyncio.to_thread(lambda: "free") == "free"
        assert not any(read.done() for read in reads)
        gate.open()
        assert await asyncio.gather(*reads) == [b"bytes"] * len(reads)

    asyncio.run(main())


@pytest.mark.django_db
def test_mark_of_a_call_that_hangs_stays_locked_until_the_call_ends(gate: StorageGate, tmp_path: Path) -> None:
    with pytest.raises(StorageUnavailable), pending.pending("new"):
        save(tmp_path, "new")
    assert list(pending.clean_up()) == []
    gate.open()
    wait_until(lambda: list(pending.clean_up()) == [1], limit_s=30)
    assert not storage.exists("new")


@pytest.mark.django_db
def test_check_and_free_space_of_a_folder_that_hangs(
    tmp_path: Path, gate: StorageGate, monkeypatch: pytest.MonkeyPatch
) -> None:
    exists = Path.exists

    def gated(path: Path) -> bool:
        if path.is_relative_to(tmp_path / "files"):
            gate()
        return exists(path)

    monkeypatch.setattr(Path, "exists", gated)
    with patch.object(storage_check, "STEP_LIMIT_S", 0.05):
        assert "no answer in time" in str(storage_problem())
    with pytest.raises(StorageUnavailable, match="no answer in time"):
        quota.check_disk()
    gate.open()
    assert storage_problem() is None
