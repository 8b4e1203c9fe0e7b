"""Server with two engine URLs for one model: a response goes on when its engine is killed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx2
import pytest

from responses_app.engines.pool.rendezvous import ranking
from tests.support.server.engine_worker import START_LIMIT_S, EngineWorker
from tests.support.server.serve_command import START_LIMIT, Server

pytestmark = [pytest.mark.engine, pytest.mark.timeout(2 * START_LIMIT_S)]
TOKENS = 600
DELTAS = 20


@pytest.fixture
def workers(tmp_path: Path) -> Iterator[list[EngineWorker]]:
    workers = [EngineWorker(tmp_path / f"engine-{number}") for number in range(2)]
    try:
        yield [worker.ready() for worker in workers]
    finally:
        for worker in workers:
            worker.end()


def events_of(lines: Iterator[str]) -> Iterator[dict[str, Any]]:
    for line in lines:
        if line.startswith("data: {"):
            event: dict[str, Any] = json.loads(line.removeprefix("data: "))
            event.pop("obfuscation", None)
            yield event


def stream_and_kill(client: httpx2.Client, workers: Sequence[EngineWorker]) -> list[dict[str, Any]]:
    """Return all events of a streamed response whose engine is killed after some deltas."""
    body = {"model": "demo-chat", "input": "Hello!", "stream": True, "max_output_tokens": TOKENS, "ignore_eos": True}
    events: list[dict[str, Any]] = []
    with client.stream("POST", "/v1/responses", json=body) as response:
        assert response.status_code == 200, response.read()
        for event in events_of(response.iter_lines()):
            events.append(event)
            if len(events) == DELTAS:
                preferred, _ = ranking(events[0]["response"]["id"], [worker.url for worker in workers])
                next(worker for worker in workers if worker.url == preferred).kill_vllm()
    return events


def test_response_goes_on_at_the_other_engine_when_its_engine_is_killed(workers: list[EngineWorker], tmp_path: Path) -> None:
    server = Server(tmp_path / "data", *(word for worker in workers for word in ("--engine", worker.url)))
    try:
        server.ready(4 * START_LIMIT)
        headers = {"Authorization": f"Bearer {server.key}"}
        with httpx2.Client(base_url=server.url, headers=headers, timeout=120) as client:
            events = stream_and_kill(client, workers)
            response = events[-1]["response"]
            assert events[-1]["type"] in ("response.completed", "response.incomplete")
            assert len(events) > 2 * DELTAS, "the engine was killed long before the end"
            assert [event["sequence_number"] for event in events] == list(range(len(events)))
            with client.stream("GET", f"/v1/responses/{response['id']}", params={"stream": "true"}) as replay:
                assert list(events_of(replay.iter_lines())) == events
            assert client.get(f"/v1/responses/{response['id']}").json() == response
            assert client.get("/health").status_code == 200, "one engine is enough"
        assert "is out" in server.output
        assert "1 of 2 are left" in server.output
    finally:
        server.end()
