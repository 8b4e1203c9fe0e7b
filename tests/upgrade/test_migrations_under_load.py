"""Migrations while the server of the latest release streams, and the rows that this server writes before and after these."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Any, Final

import psycopg
import pytest

from responses_app.installation.data_dir import ROOT
from responses_app.installation.database_url import default_url
from tests.support import plain_http
from tests.support.server.requests import replay
from tests.support.server.serve_command import EmptyServer, Server
from tests.support.upgrade.client import LIMIT_S, OldServer
from tests.support.upgrade.servers import extract_code, old_server, restore_data
from tests.support.upgrade.versions import API_KEY, TEXTS, VERSIONS, write_tape
from tests.support.waiting import wait_until

STREAMS: Final = 3
PAUSE_S: Final = 0.1
Events = list[dict[str, Any]]
pytestmark = pytest.mark.slow


def stream(server: OldServer, **fields: Any) -> Events:
    """Create a response and return the events of the stream."""
    body = {"model": "tape", "input": "Hi", "stream": True, **fields}
    headers = {"Authorization": f"Bearer {API_KEY}"}
    answer = plain_http.post(f"{server.url}/v1/responses", json=body, headers=headers, timeout=LIMIT_S)
    assert answer.status_code == 200, answer.text
    return [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: {")]


@contextmanager
def streaming(server: OldServer) -> Iterator[list[Events]]:
    """Stream all the time on several connections. Yield the list of the ended streams, complete after the block."""
    ended: list[Events] = []
    stop = Event()

    def repeat() -> None:
        while not stop.is_set():
            ended.append(stream(server))

    with ThreadPoolExecutor(STREAMS) as pool:
        tasks: list[Future[None]] = [pool.submit(repeat) for _ in range(STREAMS)]
        try:
            wait_until(lambda: len(ended) >= STREAMS, limit_s=LIMIT_S)
            yield ended
        finally:
            stop.set()
    for task in tasks:
        task.result()


def unarchived(data: Path) -> int:
    """Return the number of rows of events."""
    with psycopg.connect(default_url(data)) as link:
        row = link.execute("SELECT count(*) FROM responses_app_event").fetchone()
    assert row is not None
    return int(row[0])


def test_streams_of_the_version_before_go_on_during_the_migrations(tmp_path: Path) -> None:
    version, code, data = VERSIONS[-1], tmp_path / "code", tmp_path / "data"
    if not extract_code(version, code):
        pytest.skip(f"a checkout without the commit of {version.name}")
    restore_data(version, data)
    tape = write_tape(tmp_path / "tape", TEXTS[:2], (PAUSE_S, PAUSE_S))
    with old_server(code, data, tape, "1") as old:
        with streaming(old) as streams:
            migrated = Server.run_manage(data, "migrate", "--no-color", root=ROOT)
            assert migrated.returncode == 0, migrated.stderr
            assert "Applying responses_app.0037" in migrated.stdout
            before = len(streams)
            wait_until(lambda: len(streams) > before + 2 * STREAMS, limit_s=LIMIT_S)
        uids = [events[-1]["response"]["id"] for events in streams]
        assert {events[-1]["type"] for events in streams} == {"response.completed"}
        streams.append(stream(old, previous_response_id=uids[0]))
        old.ask("DELETE", f"responses/{uids.pop(1)}")
        del streams[1]
        uids.append(streams[-1][-1]["response"]["id"])
        # The version before archives into the migrated tables.
        wait_until(lambda: not unarchived(data), limit_s=LIMIT_S)
    with EmptyServer(data, "--engine", tape, root=ROOT, RESPONSES_API_KEY=API_KEY) as new:
        new.ready()
        for uid, events in zip(uids, streams, strict=True):
            assert replay(new, uid) == events
