"""A response outlives the server that made it: stopped or killed in the middle, started again, and the same stream goes on."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest

from responses_app.protocol.conformance import StreamValidator
from tests.support.api.case import tokens
from tests.support.server.processes import named
from tests.support.server.serve_command import END_LIMIT, Server

WORDS = [f" word{number}" for number in range(60)]
PAUSE = 0.1


@pytest.fixture
def slow(tmp_path: Path) -> str:
    """An engine that takes six seconds for one answer."""
    chunks: list[dict[str, Any]] = [{"tokens": tokens("<|channel|>final<|message|>Once")}]
    for word in WORDS:
        chunks += [{"delay": PAUSE}, {"tokens": tokens(word)}]
    path = tmp_path / "slow.jsonl"
    path.write_text(json.dumps({"chunks": [*chunks, {"tokens": tokens("<|return|>")}]}) + "\n")
    return f"script://{path}?loop=1"


def heard(lines: Iterator[str]) -> Iterator[dict[str, Any]]:
    """The events of a stream, as they come."""
    for line in lines:
        if line.startswith("data: {"):
            event = json.loads(line.removeprefix("data: "))
            yield {key: value for key, value in event.items() if key != "obfuscation"}


def listen(server: Server, how: str, seen: list[dict[str, Any]]) -> None:
    """Ask for a stream, and end its server in the middle."""
    headers = {"Authorization": f"Bearer {server.ready().key}"}
    body = {"model": "slow", "input": "Hi", "stream": True}
    with httpx2.stream("POST", f"{server.url}/v1/responses", json=body, headers=headers, timeout=30) as answer:
        for event in heard(answer.iter_lines()):
            seen.append(event)
            if len(seen) == 12 and how == "stopped":
                server.process.send_signal(signal.SIGTERM)
            elif len(seen) == 12:
                os.kill(named(server.process.pid, "responses_app.server.processes.main"), signal.SIGKILL)


@pytest.mark.parametrize("how", ["stopped", "killed"])
def test_a_stream_goes_on_after_a_restart(tmp_path: Path, slow: str, how: str) -> None:
    first = Server(tmp_path / "data", "--engine", slow, "--drain", "0.3")
    second = None
    seen: list[dict[str, Any]] = []
    try:
        headers = {"Authorization": f"Bearer {first.ready().key}"}
        with pytest.raises(httpx2.HTTPError):
            listen(first, how, seen)
        code = first.process.wait(END_LIMIT)
        assert (code == 0) is (how == "stopped")
        assert seen[-1]["type"] == "response.output_text.delta", "it was cut, and nothing was made up for an end"
        second = Server(first.folder, "--engine", slow)
        uid, last = seen[0]["response"]["id"], seen[-1]["sequence_number"]
        url = f"{second.ready().url}/v1/responses/{uid}"
        with httpx2.stream("GET", f"{url}?stream=true&starting_after={last}", headers=headers, timeout=30) as answer:
            seen += heard(answer.iter_lines())
        check = StreamValidator()
        assert [broken for event in seen for broken in check.feed(event)] + check.close() == []
        got = httpx2.get(url, headers=headers).json()
        assert got["output"][0]["content"][0]["text"] == "Once" + "".join(WORDS)
        assert got == seen[-1]["response"]
    finally:
        first.end()
        if second is not None:
            second.end()


def test_an_ordered_stop_makes_no_noise(tmp_path: Path, slow: str) -> None:
    """Streams, plain requests and followers are cut off by it, and nobody complains of that."""
    server = Server(tmp_path / "data", "--engine", slow, "--drain", "0.3")
    headers = {"Authorization": f"Bearer {server.ready().key}"}
    body = {"model": "slow", "input": "Hi"}
    with ThreadPoolExecutor(12) as threads, httpx2.Client(base_url=server.url, headers=headers, timeout=30) as client:
        uid = client.post("/v1/responses", json={**body, "background": True}).json()["id"]
        asks = [lambda: client.post("/v1/responses", json=body), lambda: client.get(f"/v1/responses/{uid}?stream=true")]
        asks.append(lambda: client.post("/v1/responses", json={**body, "stream": True}))
        asked = [threads.submit(ask) for ask in asks * 4]
        time.sleep(1.0)
        code = server.stop(signal.SIGTERM)
        answers = [one.exception() or one.result().status_code for one in asked]
    server.end()
    assert code == 0
    assert all(isinstance(one, httpx2.HTTPError) or one == 503 for one in answers)
    assert not re.findall(r"(?s)Traceback.*|.*never retrieved", server.said)


def test_queued_and_running_responses_of_the_background_complete_at_the_next_start(tmp_path: Path, slow: str) -> None:
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
                events = list(heard(answer.iter_lines()))
            check = StreamValidator()
            assert [broken for event in events for broken in check.feed(event)] + check.close() == []
            assert events[-1]["response"]["status"] == "completed"
    finally:
        first.end()
        if second is not None:
            second.end()
