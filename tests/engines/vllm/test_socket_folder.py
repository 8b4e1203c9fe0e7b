"""Folder of the sockets of a vLLM engine: in use, left by a killed process, removed."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from responses_app.engines.vllm import socket_folder
from responses_app.engines.vllm.socket_folder import PATH_VARIABLE, PREFIX, SocketFolder

KILLED = """
import os, signal
from responses_app.engines.vllm import socket_folder
socket_folder.PATH_LIMIT = 1000
socket_folder.SocketFolder().make()
open(os.environ[socket_folder.PATH_VARIABLE] + "/socket", "w").close()
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a temporary folder for this test alone."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(socket_folder, "PATH_LIMIT", 1000)
    # Set first, so that what a test leaves is undone.
    monkeypatch.setenv(PATH_VARIABLE, "")
    monkeypatch.delenv(PATH_VARIABLE)
    return tmp_path


def folders(temporary: Path) -> list[Path]:
    return sorted(temporary.glob(f"{PREFIX}*"))


def test_folder_is_private_and_goes_with_its_engine(temporary: Path) -> None:
    folder = SocketFolder()
    folder.make()
    (path,) = folders(temporary)
    assert os.environ[PATH_VARIABLE] == str(path)
    assert path.stat().st_mode & 0o777 == 0o700
    (path / "socket").touch()
    folder.remove()
    assert folders(temporary) == []
    assert PATH_VARIABLE not in os.environ


def test_engine_makes_a_folder_of_its_own_behind_the_end_of_another(temporary: Path) -> None:
    first, second = SocketFolder(), SocketFolder()
    first.make()
    second.make()
    first.remove()
    second.make()
    assert [str(path) for path in folders(temporary)] == [os.environ[PATH_VARIABLE]]
    second.remove()


def test_next_start_removes_what_a_killed_process_has_left(temporary: Path) -> None:
    subprocess.run([sys.executable, "-c", KILLED], env={**os.environ, "TMPDIR": str(temporary)}, check=False)
    (left,) = folders(temporary)
    assert [file.name for file in left.iterdir()] == ["socket"]
    folder = SocketFolder()
    folder.make()
    assert left not in folders(temporary)
    folder.remove()


def test_folder_in_use_stays(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = SocketFolder(), SocketFolder()
    first.make()
    monkeypatch.delenv(PATH_VARIABLE)
    second.make()
    assert len(folders(temporary)) == 2
    first.remove()
    second.remove()


def test_path_of_the_user_is_kept(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PATH_VARIABLE, "/elsewhere")
    folder = SocketFolder()
    folder.make()
    folder.remove()
    assert (os.environ[PATH_VARIABLE], folders(temporary)) == ("/elsewhere", [])


def test_long_path_is_not_used(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket_folder, "PATH_LIMIT", 1)
    folder = SocketFolder()
    folder.make()
    assert PATH_VARIABLE not in os.environ
    folder.remove()
