"""HTTP engine with a server that dies, hangs, or starts late."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Iterator

import pytest

from responses_app.engine_interface import Constraint, EngineUnavailable, RequestRejected
from responses_app.engines import open_engine
from responses_app.engines.http import client, health
from responses_app.engines.http.client import HttpVllm
from responses_app.engines.http.health import HUNG_TIMEOUT_S, MAX_FAILURES, WATCH_S, HealthMonitor
from tests.support.engines.faulty_http_server import GENERATE, HEALTH, plain, serve, stream, token
from tests.support.engines.generate import collect, make_request, tokens
from tests.support.manual_clock import ManualClock
from tests.support.waiting import eventually, run_ready_tasks

WHOLE = stream(token(1), token(2, "length"), b"[DONE]")


@pytest.fixture
def port() -> Iterator[int]:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(("127.0.0.1", 0))
        yield probe.getsockname()[1]


class CountingVllm(HttpVllm):
    """HTTP engine that counts its attempts to reach the server."""

    attempts = 0

    async def _connect_model(self) -> None:
        self.attempts += 1
        await super()._connect_model()


def test_start_waits_for_a_server_that_comes_up(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "RETRY_S", 0.02)

    async def main() -> None:
        engine = CountingVllm(f"http://127.0.0.1:{port}", start_wait=600)
        start = asyncio.create_task(engine.start())
        await eventually(lambda: engine.attempts >= 3)
        assert not start.done()
        async with serve(WHOLE, port) as stub:
            stub.routes["GET /v1/models"], models = plain(503), stub.routes["GET /v1/models"]
            await eventually(lambda: stub.count("GET /v1/models") >= 3)
            assert not start.done(), "a router that has no server behind it yet"
            stub.routes["GET /v1/models"] = models
            await asyncio.wait_for(start, 60)
            assert tokens(await collect(engine, make_request())) == [1, 2]
        await engine.close()

    asyncio.run(main())


def test_start_does_not_wait_for_a_missing_model() -> None:
    async def main() -> None:
        async with serve() as stub:
            engine = HttpVllm(stub.url, "q", start_wait=600)
            with pytest.raises(EngineUnavailable, match="not q"):
                await asyncio.wait_for(engine.start(), 60)

    asyncio.run(main())


def test_start_gives_up_after_start_wait() -> None:
    began = time.monotonic()
    with pytest.raises(EngineUnavailable, match="ConnectError"):
        asyncio.run(open_engine("http://127.0.0.1:9?start_wait=0.5").start())
    assert 0.5 <= time.monotonic() - began < 60


def test_start_needs_no_server_if_model_and_length_are_given(port: int) -> None:
    async def main() -> None:
        engine = open_engine(f"http://127.0.0.1:{port}?model=m&max_model_len=128&start_wait=0")
        await engine.start()
        assert engine.max_model_len == 128
        assert not await engine.is_healthy()
        async with serve(WHOLE, port):
            assert await engine.is_healthy()
            assert tokens(await collect(engine, make_request())) == [1, 2]
        await engine.close()

    asyncio.run(main())


def test_start_wait_is_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RESPONSES_ENGINE_START_WAIT", "77")
    engine = open_engine("http://gpu:1")
    assert isinstance(engine, HttpVllm)
    assert engine._start_wait == 77


def test_a_generation_ends_with_its_server_and_the_next_one_finds_the_new_server(port: int) -> None:
    async def main() -> None:
        engine = HttpVllm(f"http://127.0.0.1:{port}")
        async with serve(stream(token(1), hang=True), port) as stub:
            await engine.start()
            assert await engine.is_healthy()
            running = asyncio.create_task(collect(engine, make_request()))
            await stub.wait_for_request(GENERATE)
        with pytest.raises(EngineUnavailable):
            await asyncio.wait_for(running, 60)
        assert not await engine.is_healthy()
        with pytest.raises(EngineUnavailable):
            await collect(engine, make_request())
        async with serve(WHOLE, port):
            assert await engine.is_healthy()
            assert tokens(await collect(engine, make_request())) == [1, 2]
        await engine.close()

    asyncio.run(main())


@pytest.mark.parametrize("has_started", [True, False])
def test_a_generation_ends_when_the_core_is_dead_and_the_server_only_silent(
    has_started: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "WATCH_S", 0.05)

    async def main() -> None:
        async with serve(stream(*[token(1)] * has_started, hang=True)) as stub:
            engine = HttpVllm(stub.url)
            await engine.start()
            running = asyncio.create_task(collect(engine, make_request()))
            await eventually(lambda: stub.count(HEALTH) > 2 * MAX_FAILURES)
            assert not running.done(), "silence alone is no end"
            stub.routes[HEALTH] = plain(503)
            with pytest.raises(EngineUnavailable, match="does not answer any more"):
                await asyncio.wait_for(running, 60)
            assert not await engine.is_healthy()
            await engine.close()

    asyncio.run(main())


async def refuse() -> bool:
    """Report a failed health check."""
    return False


async def stay_silent() -> None:
    """Report a health check without an answer."""


def test_stream_continues_while_new_connections_are_refused() -> None:
    async def main() -> None:
        clock = ManualClock()
        monitor = HealthMonitor(refuse, clock=clock, sleep=clock.sleep)
        monitor.start()
        for _ in range(20):
            gate = asyncio.Event()
            receiving = asyncio.create_task(monitor.run_while_healthy(gate.wait()))
            await clock.advance(WATCH_S / 2)
            gate.set()
            await receiving
        silent = asyncio.create_task(monitor.run_while_healthy(asyncio.Event().wait()))
        for _ in range(MAX_FAILURES + 1):
            await clock.advance(WATCH_S)
        with pytest.raises(EngineUnavailable):
            await silent
        await monitor.stop()

    asyncio.run(main())


def test_hung_server_is_given_up_later() -> None:
    async def main() -> None:
        clock = ManualClock()
        monitor = HealthMonitor(stay_silent, clock=clock, sleep=clock.sleep)
        monitor.start()
        silent = asyncio.create_task(monitor.run_while_healthy(asyncio.Event().wait()))
        while clock.now_s < HUNG_TIMEOUT_S:
            await clock.advance(WATCH_S)
            assert not silent.done()
        for _ in range(2):
            await clock.advance(WATCH_S)
        with pytest.raises(EngineUnavailable):
            await silent
        await monitor.stop()

    asyncio.run(main())


def test_health_check_that_fails_unexpectedly_is_a_failed_check(caplog: pytest.LogCaptureFixture) -> None:
    async def fail() -> bool:
        raise ValueError

    async def main() -> None:
        clock = ManualClock()
        monitor = HealthMonitor(fail, clock=clock, sleep=clock.sleep)
        monitor.start()
        silent = asyncio.create_task(monitor.run_while_healthy(asyncio.Event().wait()))
        for _ in range(MAX_FAILURES + 1):
            await clock.advance(WATCH_S)
        with pytest.raises(EngineUnavailable):
            await silent
        assert not await monitor.is_healthy()
        await monitor.stop()

    asyncio.run(main())
    assert "the health check of an engine has failed" in caplog.text


def test_cancellation_during_a_failed_start_stays_a_cancellation() -> None:
    async def main() -> None:
        monitor = HealthMonitor(refuse)
        waiting = asyncio.create_task(monitor.run_while_healthy(asyncio.Event().wait()))
        await run_ready_tasks()
        waiting.cancel()
        await monitor.stop()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    asyncio.run(main())


def test_simultaneous_callers_share_one_health_check() -> None:
    async def main() -> None:
        async with serve() as stub:
            engine = HttpVllm(stub.url)
            await engine.start()
            stub.requests.clear()
            assert all(await asyncio.gather(*(engine.is_healthy() for _ in range(50))))
            assert [route for route, _ in stub.requests] == [HEALTH]
            await engine.close()

    asyncio.run(main())


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("EngineCore encountered an issue. See stack trace (above) for the root cause.", EngineUnavailable),
        ("Internal server error", RequestRejected),
    ],
)
def test_a_dead_core_is_not_taken_for_a_bad_grammar(message: str, kind: type[Exception]) -> None:
    async def main() -> None:
        async with serve(stream({"error": {"message": message, "code": 500}})) as stub:
            engine = HttpVllm(stub.url)
            await engine.start()
            with pytest.raises(kind):
                await collect(engine, make_request(constraint=Constraint("regex", "a+")))
            await engine.close()

    asyncio.run(main())
