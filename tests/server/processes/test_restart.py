"""Responses across a restart: the server is stopped or killed, started again, and the same stream continues."""

from __future__ import annotations

import json
import os
import re
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest

from responses_app.protocol.conformance import StreamValidator, Violation
from tests.support import plain_http
from tests.support.engines.held_script import CUT_AT, WORDS, held_words
from tests.support.server.processes import named
from tests.support.server.serve_command import END_LIMIT, Server
from tests.support.waiting import wait_until


class RestartedServer:
    """Server that is started again in the same folder; `server` is the latest."""

    def __init__(self, folder: Path) -> None:
        self.data, self.script = folder / "data", held_words(folder)
        self.server = self.start(max_background=1)

    def start(self, max_background: int = 64) -> Server:
        """Start the server again in the same folder."""
        limit = str(max_background)
        self.server = Server(self.data, "--engine", self.script.url, "--drain", "0.3", RESPONSES_MAX_BACKGROUND=limit)
        return self.server


@pytest.fixture(scope="module")
def restarted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestartedServer]:
    restarted = RestartedServer(tmp_path_factory.mktemp("restarted"))
    try:
        restarted.server.ready()
        yield restarted
    finally:
        restarted.server.end()


def parse_events(lines: Iterator[str]) -> Iterator[dict[str, Any]]:
    """Yield the events of a stream."""
    for line in lines:
        if line.startswith("data: {"):
            event = json.loads(line.removeprefix("data: "))
            yield {key: value for key, value in event.items() if key != "obfuscation"}


def read_until_end(server: Server, how: str, seen: list[dict[str, Any]]) -> None:
    """Read a stream into `seen`; stop or kill the server at the word CUT_AT."""
    headers = {"Authorization": f"Bearer {server.key}"}
    body = {"model": "held", "input": "Hi", "stream": True}
    with plain_http.stream("POST", f"{server.url}/v1/responses", json=body, headers=headers, timeout=180) as answer:
        for event in parse_events(answer.iter_lines()):
            seen.append(event)
            if CUT_AT not in event.get("delta", ""):
                continue
            if how == "stopped":
                server.process.send_signal(signal.SIGTERM)
            else:
                os.kill(named(server.process.pid, "responses_app.server.processes.main"), signal.SIGKILL)


def cut_stream(server: Server, how: str) -> list[dict[str, Any]]:
    """Return the events of a stream whose server is stopped or killed."""
    seen: list[dict[str, Any]] = []
    with pytest.raises(httpx2.HTTPError):
        read_until_end(server, how, seen)
    code = server.process.wait(END_LIMIT)
    assert (code == 0) is (how == "stopped")
    assert seen[-1]["type"] == "response.output_text.delta", "the stream is cut without a terminal event"
    return seen


def continue_stream(server: Server, seen: list[dict[str, Any]]) -> None:
    """Check that the server continues the stream whose first events are `seen`, and has the whole response."""
    headers = {"Authorization": f"Bearer {server.key}"}
    uid, last = seen[0]["response"]["id"], seen[-1]["sequence_number"]
    url = f"{server.url}/v1/responses/{uid}"
    with plain_http.stream("GET", f"{url}?stream=true&starting_after={last}", headers=headers, timeout=180) as answer:
        seen += parse_events(answer.iter_lines())
    assert problems(seen) == []
    got = plain_http.get(url, headers=headers).json()
    assert got["output"][0]["content"][0]["text"] == "Once" + "".join(WORDS)
    assert got == seen[-1]["response"]


def problems(events: list[dict[str, Any]]) -> list[Violation]:
    check = StreamValidator()
    return [broken for event in events for broken in check.feed(event)] + check.close()


def test_stream_and_background_responses_continue_after_a_stop(restarted: RestartedServer) -> None:
    """Stop a server with a running and two queued background responses."""
    first = restarted.server
    restarted.script.hold()
    headers = {"Authorization": f"Bearer {first.key}"}
    bodies = [{"model": "held", "input": "Hi", "background": True, "store": store} for store in (True, True, False)]
    uids = [plain_http.post(f"{first.url}/v1/responses", json=body, headers=headers).json()["id"] for body in bodies]
    seen = cut_stream(first, "stopped")
    restarted.script.release()
    second = restarted.start().ready()
    continue_stream(second, seen)
    for uid in uids:
        url = f"{second.url}/v1/responses/{uid}"
        with plain_http.stream("GET", f"{url}?stream=true", headers=headers, timeout=60) as answer:
            events = list(parse_events(answer.iter_lines()))
        assert problems(events) == []
        assert events[-1]["response"]["status"] == "completed"


def test_stream_continues_after_a_kill(restarted: RestartedServer) -> None:
    restarted.script.hold()
    seen = cut_stream(restarted.server, "killed")
    restarted.script.release()
    continue_stream(restarted.start().ready(), seen)


def test_stop_logs_no_traceback(restarted: RestartedServer) -> None:
    """Cut streams, plain requests and followers. Must be the last test of the module, which stops the server."""
    server = restarted.server
    restarted.script.hold()
    headers = {"Authorization": f"Bearer {server.key}"}
    body = {"model": "held", "input": "Hi"}
    with ThreadPoolExecutor(12) as threads, plain_http.client(base_url=server.url, headers=headers, timeout=180) as client:
        earlier = len(client.get("/v1/responses").json()["data"])
        uid = client.post("/v1/responses", json={**body, "background": True}).json()["id"]
        streams = threading.Semaphore(0)

        def read(method: str, path: str, **more: Any) -> int:
            with client.stream(method, path, **more) as answer:
                for line in answer.iter_lines():
                    if line == "event: response.in_progress":
                        streams.release()
                return answer.status_code

        requests = [
            lambda: client.post("/v1/responses", json=body).status_code,
            lambda: read("GET", f"/v1/responses/{uid}?stream=true"),
            lambda: read("POST", "/v1/responses", json={**body, "stream": True}),
        ]
        running = [threads.submit(request) for request in requests * 4]
        assert all(streams.acquire(timeout=180) for _ in range(8))
        wait_until(lambda: len(client.get("/v1/responses").json()["data"]) == earlier + 9)
        code = server.stop(signal.SIGTERM)
        answers = [one.exception() or one.result() for one in running]
    assert code == 0
    assert all(isinstance(one, httpx2.HTTPError) or one == 503 for one in answers)
    assert not re.findall(r"(?s)Traceback.*|.*never retrieved", server.output)
