"""Two servers with separate data folders on a single Postgres: each serves, follows, cancels and continues the responses of the other."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.server.requests import KEY, call, create, replay, replayed, retrieve, wait_ended
from tests.support.server.serve_command import Server
from tests.support.waiting import wait_until

SECRET_KEY = "the same key on all hosts, with enough characters"


def host(folder: Path, models: str, database: str) -> Server:
    """Start a server as on a separate host."""
    return Server(
        folder,
        RESPONSES_MODELS=models,
        DATABASE_URL=database,
        SECRET_KEY=SECRET_KEY,
        RESPONSES_API_KEY=KEY,
        RESPONSES_FILE_STORAGE=f"file://{folder.parent / 'files'}",
    )


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory, models: str, direct_url: str) -> Iterator[list[Server]]:
    """Two hosts, started at the same moment."""
    folder = tmp_path_factory.mktemp("hosts")
    servers = [host(folder / name, models, direct_url) for name in ("a", "b")]
    try:
        yield [server.ready() for server in servers]
    finally:
        for server in servers:
            server.end()


@pytest.fixture
def doomed(tmp_path: Path, models: str, direct_url: str, hosts: list[Server]) -> Iterator[Server]:
    """A third host."""
    server = host(tmp_path / "doomed", models, direct_url)
    yield server.ready()
    server.end()


def test_response_is_read_replayed_and_deleted_on_the_other_host(hosts: list[Server]) -> None:
    first, second = hosts
    created = create(first)
    assert retrieve(second, created["id"]) == created
    assert replay(second, created["id"]) == replay(first, created["id"])
    assert call(second, "DELETE", f"responses/{created['id']}").status_code == 200
    assert call(first, "GET", f"responses/{created['id']}").status_code == 404


def test_running_response_is_followed_and_cancelled_on_the_other_host(hosts: list[Server]) -> None:
    first, second = hosts
    uid = create(first, model="long", background=True)["id"]
    with replayed(second, uid) as events:
        assert next(event for event in events if event["type"] == "response.output_text.delta")
        assert call(second, "POST", f"responses/{uid}/cancel").json()["status"] == "cancelled"
        last = list(events)[-1]
    assert last["response"]["status"] == "cancelled"
    assert replay(first, uid)[-1] == last


def test_chain_continues_on_the_other_host(hosts: list[Server]) -> None:
    first, second = hosts
    created = create(first)
    followed = create(second, previous_response_id=created["id"])
    assert followed["previous_response_id"] == created["id"]
    assert followed["usage"]["input_tokens"] > created["usage"]["input_tokens"]


def test_conversation_has_one_running_response_on_all_hosts(hosts: list[Server]) -> None:
    first, second = hosts
    conversation = call(first, "POST", "conversations", json={}).json()["id"]
    uid = create(first, model="long", background=True, conversation=conversation)["id"]
    refusals = [server.ask(conversation=conversation) for server in hosts]
    assert [(answer.status_code, answer.json()["error"]["code"]) for answer in refusals] == [(400, "conversation_locked")] * 2
    call(first, "POST", f"responses/{uid}/cancel")
    wait_ended(second, uid)
    assert second.ask(conversation=conversation).status_code == 200


def test_uploaded_file_is_read_on_the_other_host(hosts: list[Server]) -> None:
    first, second = hosts
    form: dict[str, Any] = {"files": {"file": ("note.txt", b"in the shared folder")}, "data": {"purpose": "user_data"}}
    uid = call(first, "POST", "files", **form).json()["id"]
    assert call(second, "GET", f"files/{uid}/content").content == b"in the shared folder"
    assert call(second, "DELETE", f"files/{uid}").status_code == 200
    assert call(first, "GET", f"files/{uid}/content").status_code == 404


def test_killed_host_leaves_its_responses_to_the_others(hosts: list[Server], doomed: Server) -> None:
    uid = create(doomed, model="long", background=True)["id"]
    with replayed(hosts[0], uid) as events:
        seen = [next(events) for _ in range(6)]
        os.killpg(doomed.process.pid, signal.SIGKILL)
        seen += events
    assert seen[-1]["type"] == "response.completed"
    assert [event["sequence_number"] for event in seen] == list(range(len(seen)))
    assert replay(hosts[1], uid) == seen


def test_stopped_host_hands_its_responses_over(tmp_path: Path, models: str, direct_url: str, hosts: list[Server]) -> None:
    leaving = host(tmp_path / "leaving", models, direct_url)
    try:
        uid = create(leaving.ready(), model="long", background=True)["id"]
        assert leaving.stop(signal.SIGTERM) == 0
    finally:
        leaving.end()
    assert wait_ended(hosts[1], uid)["status"] == "completed"
    wait_until(lambda: replay(hosts[0], uid) == replay(hosts[1], uid))


def test_storage_without_the_files_of_the_database_is_named_at_the_start(
    tmp_path: Path, models: str, direct_url: str, hosts: list[Server]
) -> None:
    form: dict[str, Any] = {"files": {"file": ("note.txt", b"text")}, "data": {"purpose": "user_data"}}
    assert call(hosts[0], "POST", "files", **form).status_code == 200
    apart = host(tmp_path / "apart", models, direct_url)
    try:
        assert "All hosts of a database need the same RESPONSES_FILE_STORAGE" in apart.ready().output
    finally:
        apart.end()
