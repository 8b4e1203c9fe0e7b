"""Archiving of ended responses by a whole server, and `manage.py prune` beside it."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from responses_app.server.processes import archiver
from tests.support import plain_http
from tests.support.server.serve_command import Server
from tests.support.waiting import wait_until

LIMIT = 180.0


@pytest.fixture
def server(tmp_path: Path, tape: str) -> Iterator[Server]:
    server = Server(tmp_path / "data", "--engine", tape, RESPONSES_SEAL_AFTER="0")
    yield server
    server.end()


def pruned(server: Server, *arguments: str) -> str:
    """Run `manage.py prune` beside the running server and return the output."""
    return server.manage("prune", *arguments)


def test_ended_responses_are_archived_and_pruned_while_the_server_runs(server: Server) -> None:
    uid = server.ready().ask().json()["id"]
    address, headers = f"{server.url}/v1/responses/{uid}", {"Authorization": f"Bearer {server.key}"}
    before = plain_http.get(address, headers=headers).content
    stream = plain_http.get(f"{address}?stream=true", headers=headers).content
    wait_until(
        lambda: "deltas: 1 would be deleted" in pruned(server, "--deltas=0s", "--dry-run"),
        limit_s=LIMIT,
        explain=lambda: server.output,
    )
    assert plain_http.get(address, headers=headers).content == before
    assert plain_http.get(f"{address}?stream=true", headers=headers).content == stream
    assert "deltas: 1 deleted" in pruned(server, "--deltas=0s")
    assert plain_http.get(address, headers=headers).content == before
    assert plain_http.get(f"{address}?stream=true", headers=headers).status_code == 400
    assert "responses: 1 deleted" in pruned(server, "--responses=0s")
    assert plain_http.get(address, headers=headers).status_code == 404


def test_killed_archiver_has_a_line_in_the_log(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(archiver, "START_AFTER_S", 0.0)
    starter = archiver._ArchiverStarter()
    thread = threading.Thread(target=starter.run)
    thread.start()
    try:
        wait_until(lambda: starter._process is not None)
        assert starter._process is not None
        starter._process.kill()
        wait_until(lambda: "the archiver was ended by SIGKILL; it is started again in 1 s" in caplog.text)
    finally:
        starter.stop()
        thread.join()
    assert len(caplog.records) == 1


def test_archiver_that_the_machine_cannot_start_is_tried_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(archiver, "START_AFTER_S", 0.0)
    monkeypatch.setattr(archiver, "RESTART_PAUSES_S", (0.0,))
    start, failures = archiver._start, [OSError("Cannot allocate memory")]

    def fail_once() -> subprocess.Popen[bytes]:
        if failures:
            raise failures.pop()
        return start()

    monkeypatch.setattr(archiver, "_start", fail_once)
    starter = archiver._ArchiverStarter()
    thread = threading.Thread(target=starter.run)
    thread.start()
    try:
        wait_until(lambda: starter._process is not None)
    finally:
        starter.stop()
        thread.join()
    assert "the archiver cannot be started; it is started again in 0 s" in caplog.text
