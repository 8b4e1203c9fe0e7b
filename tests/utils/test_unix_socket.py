"""Sockets of the file system."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from responses_app.utils import unix_socket


def test_socket_gets_its_name_when_it_accepts_connections(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "own.sock"
    existed: list[bool] = []
    original = socket.socket.listen

    def observed(listening: socket.socket, backlog: int) -> None:
        existed.append(path.exists())
        original(listening, backlog)

    monkeypatch.setattr(socket.socket, "listen", observed)
    with unix_socket.listen(path), socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))
    assert existed == [False]
    assert [entry.name for entry in tmp_path.iterdir()] == ["own.sock"]
    assert path.stat().st_mode & 0o777 == 0o600


def test_socket_replaces_those_of_killed_processes(tmp_path: Path) -> None:
    path = tmp_path / "own.sock"
    unix_socket.listen(path).close()
    (tmp_path / "own.sock.new").touch()
    with unix_socket.listen(path), socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))
    assert [entry.name for entry in tmp_path.iterdir()] == ["own.sock"]


def test_socket_replaces_no_other_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("text")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "file")
    for path in (tmp_path / "file", tmp_path / "folder", tmp_path / "link", Path("/")):
        with pytest.raises(FileExistsError, match="there is another file"):
            unix_socket.listen(path)
    assert (tmp_path / "file").read_text() == "text"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["file", "folder", "link"]
