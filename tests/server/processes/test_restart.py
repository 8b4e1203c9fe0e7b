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

from responses_app.protocol.conformance import StreamValidator
from tests.support.engines.slow_script import WORDS, slow_engine
from tests.support.server.processes import named
from tests.support.server.serve_command import END_LIMIT, Server
from tests.support.waiting import wait_until


@pytest.fixture
def slow(tmp_path: Path) -> str:
    return slow_engine(tmp_path)


def parse_events(lines: Iterator[str]) -> Iterator[dict[str, Any]]:
    """Yield the events of a stream."""
    for line in lines:
        if line.startswith("data: {"):
            event = json.loads(line.removeprefix("data: "))
            yield {key: value for key, value in event.items() if key != "obfuscation"}


def read_until_end(server: Server, how: str, seen: list[dict[str, Any]]) -> None:
    """Read a stream into `seen`, and end its server after 12 events."""
    headers = {"Authorization": f"Bearer {server.ready().key}"}
    body = {"model": "slow", "input": "Hi", "stream": True}
    with httpx2.stream("POST", f"{server.url}/v1/responses", json=body, headers=headers, timeout=30) as answer:
        for event in parse_events(answer.iter_lines()):
            seen.append(event)
            if len(seen) == 12 and how == "stopped":
                server.process.send_signal(signal.SIGTERM)
            elif len(seen) == 12:
                os.kill(named(server.process.pid, "responses_app.server.processes.main"), signal.SIGKILL)


@pytest.mark.parametrize("how", ["stopped", "killed"])
def test_stream_continues_after_a_restart(tmp_path: Path, slow: str, how: str) -> None:
    first = Server(tmp_path / "data", "--engine", slow, "--drain", "0.3")
    second = None
    seen: list[dict[str, Any]] = []
    try:
        headers = {"Authorization": f"Bearer {first.ready().key}"}
        with pytest.raises(httpx2.HTTPError):
            read_until_end(first, how, seen)
        code = first.process.wait(END_LIMIT)
        assert (code == 0) is (how == "stopped")
        assert seen[-1]["type"] == "response.output_text.delta", "the stream is cut without a terminal event"
        second = Server(first.folder, "--engine", slow)
        uid, last = seen[0]["response"]["id"], seen[-1]["sequence_number"]
        url = f"{second.ready().url}/v1/responses/{uid}"
        with httpx2.stream("GET", f"{url}?stream=true&starting_after={last}", headers=headers, timeout=30) as answer:
            seen += parse_events(answer.iter_lines())
        check = StreamValidator()
        assert [broken for event in seen for broken in check.feed(event)] + check.close() == []
        got = httpx2.get(url, headers=headers).json()
        assert got["output"][0]["content"][0]["text"] == "Once" + "".join(WORDS)
        assert got == seen[-1]["response"]
    finally:
        first.end()
        if second is not None:
            second.end()


def test_stop_logs_no_traceback(tmp_path: Path, slow: str) -> None:
    """Streams, plain requests and followers are cut without a traceback."""
    server = Server(tmp_path / "data", "--engine", slow, "--drain", "0.3")
    headers = {"Authorization": f"Bearer {server.ready().key}"}
    body = {"model": "slow", "input": "Hi"}
    with ThreadPoolExecutor(12) as threads, httpx2.Client(base_url=server.url, headers=headers, timeout=30) as client:
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
        assert all(streams.acquire(timeout=30) for _ in range(8))
        wait_until(lambda: len(client.get("/v1/responses").json()["data"]) == 9)
        code = server.stop(signal.SIGTERM)
        answers = [one.exception() or one.result() for one in running]
    server.end()
    assert code == 0
    assert all(isinstance(one, httpx2.HTTPError) or one == 503 for one in answers)
    assert not re.findall(r"(?s)Traceback.*|.*never retrieved", server.output)


def test_background_responses_complete_after_a_restart(tmp_path: Path, slow: str) -> None:
    first = Server(tmp_path / "data", "--engine", slow, "--drain", "0.3", RESPONSES_MAX_BACKGROUND="1")
    second = None
    try:
        headers = {"Authorization": f"Bearer {first.ready().key}"}
        bodies = [{"model": "slow", "input": "Hi", "background": True, "store": store} for store in (True, True, False)]
        uids = [httpx2.post(f"{first.url}/v1/responses", json=body, headers=headers).json()["id"] for body in bodies]
        assert first.stop(signal.SIGTERM) == 0
        second = Server(first.folder, "--engine", slow)
        for uid in uids:
            url = f"{second.ready().url}/v1/responses/{uid}"
            with httpx2.stream("GET", f"{url}?stream=true", headers=headers, timeout=60) as answer:
                events = list(parse_events(answer.iter_lines()))
            check = StreamValidator()
            assert [broken for event in events for broken in check.feed(event)] + check.close() == []
            assert events[-1]["response"]["status"] == "completed"
    finally:
        first.end()
        if second is not None:
            second.end()
