"""Two servers with separate data folders on a single Postgres: each serves, follows, cancels and continues the responses of the other."""

from __future__ import annotations

import itertools
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import psycopg
import pytest

from tests.support.deploy import proxies
from tests.support.engines.held_script import HeldScript
from tests.support.server.requests import KEY, call, create, replay, replayed, retrieve, wait_ended
from tests.support.server.serve_command import Server
from tests.support.waiting import wait_until

STREAMS, DRAIN, DRAIN_LIMIT_S = int(os.environ.get("TEST_STREAMS", "6")), ("--drain", "50"), 60
SECRET_KEY = "the same key on all hosts, with enough characters"


def host(folder: Path, models: str, database: str, *arguments: str) -> Server:
    """Start a server as on a separate host."""
    return Server(
        folder,
        *arguments,
        RESPONSES_MODELS=models,
        DATABASE_URL=database,
        SECRET_KEY=SECRET_KEY,
        RESPONSES_API_KEY=KEY,
        RESPONSES_FILE_STORAGE=f"file://{folder.parent / 'files'}",
        RESPONSES_DRAIN_DELAY="1",
    )


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory, models: str, direct_url: str) -> Iterator[list[Server]]:
    """Two hosts, started at the same moment on an empty database."""
    folder = tmp_path_factory.mktemp("hosts")
    servers = [host(folder / name, models, direct_url, *DRAIN) for name in ("a", "b")]
    try:
        for server in servers:
            server.ready()
        yield servers
    finally:
        for server in servers:
            server.end()


@pytest.fixture(scope="module")
def doomed(tmp_path_factory: pytest.TempPathFactory, models: str, direct_url: str, hosts: list[Server]) -> Iterator[Server]:
    """A third host, which does not see the file storage of the others. A test kills it."""
    form: dict[str, Any] = {"files": {"file": ("note.txt", b"text")}, "data": {"purpose": "user_data"}}
    assert call(hosts[0], "POST", "files", **form).status_code == 200
    server = host(tmp_path_factory.mktemp("apart") / "doomed", models, direct_url)
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
    uid = create(first, model="held", background=True)["id"]
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
    uid = create(first, model="held", background=True, conversation=conversation)["id"]
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


def test_killed_host_leaves_its_responses_to_the_others(
    hosts: list[Server], doomed: Server, direct_url: str, script: HeldScript
) -> None:
    """Kill a host; the next owner also settles the token reservation."""
    with psycopg.connect(direct_url, autocommit=True) as database:
        database.execute("UPDATE responses_app_apikey SET tokens_per_day = 1000000")
    uid = create(doomed, model="held", background=True)["id"]
    with replayed(hosts[0], uid) as events:
        seen = [next(events)]
        while seen[-1]["type"] != "response.output_text.delta":
            seen.append(next(events))
        os.killpg(doomed.process.pid, signal.SIGKILL)
        with script.released():
            seen += events
    assert seen[-1]["type"] == "response.completed"
    with psycopg.connect(direct_url, autocommit=True) as database:
        used = database.execute(
            "SELECT used FROM responses_app_limitcounter WHERE name LIKE 'tokens per day of key %'"
        ).fetchall()
        database.execute("UPDATE responses_app_apikey SET tokens_per_day = NULL")
    assert used == [(seen[-1]["response"]["usage"]["total_tokens"],)]
    assert [event["sequence_number"] for event in seen] == list(range(len(seen)))
    assert replay(hosts[1], uid) == seen


def test_storage_without_the_files_of_the_database_is_named_at_the_start(doomed: Server) -> None:
    assert "All hosts of a database need the same RESPONSES_FILE_STORAGE" in doomed.output


@dataclass(slots=True)
class ClientsDuringRestart:
    """Clients that send requests until the restarts are over; `begun` are the numbers of the clients that have got text."""

    client: httpx2.Client
    begun: set[int] = field(default_factory=set)
    is_over: threading.Event = field(default_factory=threading.Event)

    def repeat(self, request: Callable[[], None]) -> int:
        """Send requests until the restarts are over. Return their number."""
        for count in itertools.count(1):
            request()
            if self.is_over.is_set():
                return count
        raise AssertionError

    def stream(self, number: int) -> None:
        """Read a stream of TEST_STREAM_S seconds up to the terminal event."""
        body, types = {"model": "slow", "input": "Hi", "stream": True}, list[str]()
        with self.client.stream("POST", "/v1/responses", json=body) as answer:
            assert answer.status_code == 200, answer.read()
            for line in answer.iter_lines():
                if line.startswith("event: "):
                    types.append(line.removeprefix("event: "))
                    self.begun.add(number)
        assert types[-1] == "response.completed"

    def ask(self) -> None:
        """Send a short request without a stream."""
        answer = self.client.post("/v1/responses", json={"model": "tape", "input": "Hi"})
        assert answer.status_code == 200, answer.text


def test_rolling_restart_behind_nginx_breaks_no_stream(
    tmp_path: Path, models: str, direct_url: str, hosts: list[Server]
) -> None:
    """STREAMS clients stream, and two send short requests, while each host is restarted in turn."""
    if reason := proxies.missing("nginx"):
        pytest.skip(reason)
    first, second = hosts
    with (
        proxies.proxy("nginx", first.port, tmp_path / "nginx", second.port) as nginx,
        nginx.client(headers={"Authorization": f"Bearer {KEY}"}, limits=httpx2.Limits()) as client,
        ThreadPoolExecutor(STREAMS + 2) as threads,
    ):
        load = ClientsDuringRestart(client)
        work = [threads.submit(load.repeat, partial(load.stream, number)) for number in range(STREAMS)]
        work += [threads.submit(load.repeat, load.ask) for _ in range(2)]
        try:
            wait_until(lambda: len(load.begun) == STREAMS or any(one.done() for one in work))
            for index, leaving in enumerate((first, second)):
                leaving.process.send_signal(signal.SIGTERM)
                assert leaving.process.wait(DRAIN_LIMIT_S) == 0, leaving.output
                hosts[index] = host(leaving.folder, models, direct_url, *DRAIN, "--port", str(leaving.port))
                hosts[index].port = leaving.port
                hosts[index].ready()
        finally:
            load.is_over.set()
        assert min(one.result() for one in work) >= 2


def test_stopped_host_hands_its_responses_over(hosts: list[Server], script: HeldScript) -> None:
    """Send two signals: the second ends the drain. Must be the last test of the module, because a host stops."""
    leaving, other = hosts
    uid = create(leaving, model="held", background=True)["id"]
    leaving.process.send_signal(signal.SIGTERM)
    wait_until(lambda: "stopping; responses that run may take" in leaving.output)
    assert leaving.stop(signal.SIGTERM) == 0
    with script.released():
        assert wait_ended(other, uid)["status"] == "completed"
    events = replay(other, uid)
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
