"""A stream whose process is killed: the client sends the request again and gets the same stream from its start."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import psycopg
import pytest

from responses_app.installation.database_url import superuser_url
from tests.support import plain_http
from tests.support.engines.held_script import CUT_AT, WORDS, HeldScript, held_words
from tests.support.server.processes import all_named
from tests.support.server.serve_command import Server
from tests.support.waiting import wait_until

WEB = "server.processes.web_process"
HI = [{"role": "user", "content": "Hi"}]
# The second body is so long that a thread hashes it.
PATHS: dict[str, Any] = {
    "/v1/messages": {"max_tokens": 500},
    "/v1/chat/completions": {"prediction": {"type": "content", "content": "x" * 100_000}},
}


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> HeldScript:
    script = held_words(tmp_path_factory.mktemp("script"))
    script.release()
    return script


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, script: HeldScript) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("repeated") / "data", "--engine", script.url, "--web", "2")
    yield server.ready()
    server.end()


def events(server: Server, path: str, **headers: str) -> Iterator[dict[str, Any]]:
    """Send the request and yield the events of its stream."""
    body = {"model": "held", "messages": HI, "stream": True, **PATHS[path]}
    headers = {"Authorization": f"Bearer {server.key}", **headers}
    with plain_http.stream("POST", server.url + path, json=body, headers=headers, timeout=60) as answer:
        assert answer.status_code == 200, answer.read()
        for line in answer.iter_lines():
            if line.startswith("data: {"):
                event = json.loads(line.removeprefix("data: "))
                yield {key: value for key, value in event.items() if key != "obfuscation"}


def cut_stream(server: Server, script: HeldScript, path: str) -> list[dict[str, Any]]:
    """Return the first events of a stream, after which the web processes are killed, and wait until these have been replaced."""
    script.hold()
    seen: list[dict[str, Any]] = []
    old = set(all_named(server.process.pid, WEB))
    stream = events(server, path)
    with pytest.raises(httpx2.HTTPError):
        read_and_kill(stream, seen, old)
    script.release()
    wait_until(lambda: len(set(all_named(server.process.pid, WEB)) - old) == 2 and is_ready(server))
    return seen


def read_and_kill(stream: Iterator[dict[str, Any]], seen: list[dict[str, Any]], processes: set[int]) -> None:
    """Read a stream into `seen`, and kill the processes at the word CUT_AT."""
    for event in stream:
        seen.append(event)
        if CUT_AT in text_of([event]):
            for pid in processes:
                os.kill(pid, signal.SIGKILL)


def is_ready(server: Server) -> bool:
    try:
        return plain_http.get(f"{server.url}/health/ready", timeout=5).status_code == 200
    except httpx2.HTTPError:
        return False


def count_responses(server: Server) -> int:
    with psycopg.connect(superuser_url(server.folder)) as connection:
        row = connection.execute("SELECT count(*) FROM responses_app_response").fetchone()
    assert row is not None
    return int(row[0])


def text_of(stream: list[dict[str, Any]]) -> str:
    """Return the text of the events of either format."""
    deltas = [event.get("delta", {}) for event in stream]
    deltas += [choice["delta"] for event in stream for choice in event.get("choices", ())]
    return "".join(delta.get("text") or delta.get("content") or "" for delta in deltas)


@pytest.mark.parametrize("path", PATHS)
def test_a_repeated_request_gets_the_same_stream_from_its_start(server: Server, script: HeldScript, path: str) -> None:
    before = count_responses(server)
    seen = cut_stream(server, script, path)
    again = list(events(server, path))
    assert again[: len(seen)] == seen
    assert text_of(again) == "Once" + "".join(WORDS)
    assert count_responses(server) == before + 1


@pytest.mark.parametrize("path", PATHS)
def test_equal_requests_of_a_living_process_have_their_own_responses(server: Server, path: str) -> None:
    before = count_responses(server)
    first, second = events(server, path), events(server, path)
    ids = {json.dumps(next(stream).get("message", {}).get("id")) + str(number) for number, stream in enumerate((first, second))}
    assert len(ids) == 2
    list(first)
    list(second)
    assert count_responses(server) == before + 2


def test_an_idempotency_key_gets_the_same_stream_also_from_a_living_process(server: Server) -> None:
    before = count_responses(server)
    first = list(events(server, "/v1/chat/completions", **{"Idempotency-Key": "once"}))
    assert list(events(server, "/v1/chat/completions", **{"Idempotency-Key": "once"})) == first
    assert count_responses(server) == before + 1
    assert list(events(server, "/v1/chat/completions", **{"Idempotency-Key": "twice"})) != first


def test_equal_requests_with_an_idempotency_key_at_the_same_moment_get_one_response(server: Server) -> None:
    before = count_responses(server)
    with ThreadPoolExecutor(8) as clients:
        streams = list(
            clients.map(lambda _: list(events(server, "/v1/chat/completions", **{"Idempotency-Key": "all"})), range(8))
        )
    assert all(stream == streams[0] for stream in streams)
    assert text_of(streams[0]) == "Once" + "".join(WORDS)
    assert count_responses(server) == before + 1
