"""Server with two engine URLs for a model: chains keep their prefix cache, and a response goes on when its engine is killed."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx2
import pytest

from responses_app.engine_interface import EngineUnavailable
from responses_app.engines import open_engine, orphan_guard
from responses_app.engines.pool.member import ranking
from responses_app.engines.urls import location
from responses_app.installation.data_dir import ROOT
from tests.support import plain_http
from tests.support.engines.generate import collect, make_request, tokens
from tests.support.server.processes import family, left, named
from tests.support.server.serve_command import START_LIMIT, Server, free_port
from tests.support.waiting import wait_until

# An idle machine needs 25 s.
START_LIMIT_S = 400.0


class EngineWorker:
    """Engine worker with a data folder and a port of its own; `url` is the address with its key, without parameters."""

    def __init__(self, folder: Path, model: str = "demo-chat", **variables: str) -> None:
        port = free_port()
        self.url, self.log = f"http://:s3cret@127.0.0.1:{port}", folder.with_suffix(".log")
        self.folder = folder / "engines" / model
        environ = os.environ | {"RESPONSES_DATA_DIR": str(folder), "VLLM_CPU_KVCACHE_SPACE": "1"} | variables
        with self.log.open("wb") as out:
            self.process = subprocess.Popen(
                [sys.executable, "manage.py", "engine", "--model", model, "--port", str(port), "--key", "s3cret"],
                cwd=ROOT,
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
            )

    def ready(self) -> EngineWorker:
        """Wait until the worker has printed its engine URL."""

        def is_ready() -> bool:
            assert self.process.poll() is None, self.log.read_text()
            return f"\n{self.url}?" in self.log.read_text()

        wait_until(is_ready, limit_s=START_LIMIT_S, poll_s=0.2, explain=self.log.read_text)
        return self

    def kill_core(self) -> set[tuple[int, str]]:
        """Kill the process of vLLM that generates; return the processes that end with it, before the worker starts new ones."""
        processes = family(named(self.process.pid, "engines.vllm.server"))
        os.kill(named(self.process.pid, "VLLM::EngineCore"), signal.SIGKILL)
        return processes

    def end(self) -> None:
        self.process.terminate()
        self.process.wait(60)


pytestmark = [pytest.mark.engine, pytest.mark.timeout(3 * START_LIMIT_S)]
# Deltas before the kill, and tokens of the answer: the engine must still generate when a busy test process kills it.
DELTAS = 3
TOKENS = 1200
# The demo model ends an answer in words after 120 tokens. A call whose text has a grammar has a length.
WORDS: Any = {
    "type": "custom",
    "name": "say",
    "format": {"type": "grammar", "syntax": "regex", "definition": "([a-z]{3} ){1200}"},
}
CHAINS = 4
LONG = "The offer for the northern plant is 41 million. " * 20


@pytest.fixture(scope="module")
def workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[EngineWorker]]:
    """With a binding of threads the second engine has several processes on any machine, and these share memory."""
    folder = tmp_path_factory.mktemp("engines")
    workers = [EngineWorker(folder / "engine-0"), EngineWorker(folder / "engine-1", VLLM_CPU_OMP_THREADS_BIND="auto")]
    try:
        yield [worker.ready() for worker in workers]
    finally:
        for worker in workers:
            worker.end()


@pytest.fixture(scope="module")
def pooled(workers: list[EngineWorker], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Run a server with both engines."""
    folder = tmp_path_factory.mktemp("server") / "data"
    with Server(folder, *(word for worker in workers for word in ("--engine", worker.url))) as server:
        yield server.ready(4 * START_LIMIT)


@pytest.fixture
def client(pooled: Server) -> Iterator[httpx2.Client]:
    with plain_http.client(base_url=pooled.url, headers={"Authorization": f"Bearer {pooled.key}"}, timeout=120) as client:
        yield client


async def generated(url: str) -> bool:
    """Return whether a whole generation succeeds; check its tokens and its count of cached tokens."""
    engine = open_engine(f"{url}?model=demo-chat")
    try:
        await engine.start()
        chunks = await collect(engine, make_request(max_tokens=5, priority=-1, sampling={"ignore_eos": True}))
    except EngineUnavailable:
        return False
    finally:
        await engine.close()
    assert len(tokens(chunks)) == 5
    assert chunks[-1].cached is not None
    return True


def turn(client: httpx2.Client, text: str, previous: str | None = None) -> tuple[str, int]:
    """Make a response. Return its id, and the number of prompt tokens that were in the prefix cache."""
    body = {"model": "demo-chat", "input": text, "previous_response_id": previous, "max_output_tokens": 16}
    response = client.post("/v1/responses", json=body).raise_for_status().json()
    return response["id"], response["usage"]["input_tokens_details"]["cached_tokens"]


def events_of(lines: Iterator[str]) -> Iterator[dict[str, Any]]:
    for line in lines:
        if line.startswith("data: {"):
            event: dict[str, Any] = json.loads(line.removeprefix("data: "))
            event.pop("obfuscation", None)
            yield event


def stream_and_kill(client: httpx2.Client, workers: Sequence[EngineWorker]) -> list[dict[str, Any]]:
    """Return all events of a streamed response whose engine is killed after some deltas."""
    body = {"model": "demo-chat", "input": "Hello!", "tools": [WORDS], "tool_choice": {"type": "custom", "name": "say"}}
    events: list[dict[str, Any]] = []
    deltas = 0
    with client.stream("POST", "/v1/responses", json={**body, "stream": True, "max_output_tokens": TOKENS}) as response:
        assert response.status_code == 200, response.read()
        for event in events_of(response.iter_lines()):
            events.append(event)
            deltas += event["type"] == "response.custom_tool_call_input.delta"
            if deltas == DELTAS and event["type"].endswith(".delta"):
                preferred, _ = ranking(events[0]["response"]["id"], [location(worker.url) for worker in workers])
                killed = next(worker for worker in workers if location(worker.url) == preferred).kill_core()
                assert left(killed) == []
    return events


def test_every_turn_of_a_chain_finds_its_prefix_in_the_cache(client: httpx2.Client) -> None:
    for number in range(CHAINS):
        first, _ = turn(client, f"{number}: {LONG}")
        second, cached = turn(client, "And then?", first)
        assert cached >= 128, "the engine of the first turn has the prefix"
        assert turn(client, "And then?", second)[1] >= cached


def test_response_goes_on_at_the_other_engine_when_its_engine_is_killed(
    client: httpx2.Client, workers: list[EngineWorker], pooled: Server
) -> None:
    """Must be the last test of the module that needs both engines: it kills one."""
    events = stream_and_kill(client, workers)
    response = events[-1]["response"]
    assert events[-1]["type"] in ("response.completed", "response.incomplete")
    assert response["usage"]["output_tokens"] > TOKENS // 2
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    with client.stream("GET", f"/v1/responses/{response['id']}", params={"stream": "true"}) as replay:
        assert list(events_of(replay.iter_lines())) == events
    assert client.get(f"/v1/responses/{response['id']}").json() == response
    assert client.get("/health").status_code == 200, "one engine is enough"
    assert "is out" in pooled.output, pooled.output
    assert "1 of 2 are left" in pooled.output


def test_killed_engine_is_started_again(workers: list[EngineWorker]) -> None:
    """The test before this one kills an engine."""
    for worker in workers:
        wait_until(lambda worker=worker: asyncio.run(generated(worker.url)), limit_s=START_LIMIT_S, poll_s=0.5)  # type: ignore[misc]


def test_ended_workers_leave_nothing(workers: list[EngineWorker]) -> None:
    """Must be the last test of the module. One worker gets a signal, the other is killed."""
    signaled, killed = workers
    processes = family(signaled.process.pid)
    assert (signaled.folder / "vllm.log").exists()
    signaled.process.send_signal(signal.SIGTERM)
    assert signaled.process.wait(15) == 0, signaled.log.read_text()
    assert left(processes) == []
    assert not (signaled.folder / "run").exists()
    processes = family(killed.process.pid)
    shared = set[str]().union(*(orphan_guard.shared_memory(one) for one, _ in processes))
    assert shared
    killed.process.kill()
    assert left(processes) == []
    # The guard, the last of them, removes it before it ends.
    assert [path for path in shared if Path(path).exists()] == []
