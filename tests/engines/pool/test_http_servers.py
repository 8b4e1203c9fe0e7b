"""Pool over HTTP: two servers with the token endpoint of vLLM, which fail, refuse requests and serve other models."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import pytest

from responses_app.engine_interface import EngineLacksModel, EngineOverloaded, EngineUnavailable, GenerateRequest, Sampling
from responses_app.engines import open_engine
from responses_app.engines.http import silence
from responses_app.engines.pool import engine
from responses_app.engines.pool.engine import EnginePool
from responses_app.engines.pool.member import ranking
from responses_app.runs.execute.generation import Generation
from tests.support.engines.faulty_http_server import GENERATE, HEALTH, FaultyServer, plain, serve, stream, token
from tests.support.engines.generate import collect, make_request, tokens
from tests.support.waiting import eventually

WHOLE = stream(token(1), token(2), token(3, "length"), b"[DONE]")
SESSION = "resp_1"


@dataclass
class Pair:
    """Pool of two servers: `first` is the server that the session prefers, `second` the other."""

    pool: EnginePool
    first: FaultyServer
    second: FaultyServer


@asynccontextmanager
async def running() -> AsyncIterator[Pair]:
    """Run two servers, and start a pool of both."""
    async with AsyncExitStack() as stack:
        servers = [await stack.enter_async_context(serve(WHOLE)) for _ in range(2)]
        pool = open_engine(",".join(server.url for server in servers) + "?model=m&start_wait=0")
        assert isinstance(pool, EnginePool)
        await pool.start()
        stack.push_async_callback(pool.close)
        by_url = {server.url: server for server in servers}
        first, second = (by_url[url] for url in ranking(SESSION, list(by_url)))
        yield Pair(pool, first, second)


def test_session_and_request_id_are_headers() -> None:
    async def main() -> None:
        async with running() as pair:
            await collect(pair.pool, make_request(id="resp_2", session=SESSION))
            head = pair.first.headers[-1].lower()
            assert "\r\nx-session-id: resp_1\r\n" in head
            assert "\r\nx-request-id: resp_2\r\n" in head
            assert pair.second.count(GENERATE) == 0

    asyncio.run(main())


@pytest.mark.parametrize("status", [429, 503])
def test_refusal_goes_to_the_other_server(status: int) -> None:
    async def main() -> None:
        async with running() as pair:
            pair.first.routes[GENERATE] = plain(status, {"error": {"message": "busy"}}, headers="Retry-After: 7\r\n")
            for _ in range(2):
                assert tokens(await collect(pair.pool, make_request(session=SESSION))) == [1, 2, 3]
            assert (pair.first.count(GENERATE), pair.second.count(GENERATE)) == (1, 2)
            assert pair.pool.refusal_s == 0
            pair.second.routes[GENERATE] = pair.first.routes[GENERATE]
            with pytest.raises(EngineOverloaded) as caught:
                await collect(pair.pool, make_request(session=SESSION))
            assert 5 < (caught.value.retry_after_s or 0) <= 7
            assert all(status.is_up for status in pair.pool.statuses)

    asyncio.run(main())


def test_model_that_a_server_has_removed_is_served_by_the_other_until_both_lack_it() -> None:
    async def main() -> None:
        async with running() as pair:
            for server in (pair.first, pair.second):
                server.routes[GENERATE] = plain(404, {"error": {"message": "The model `m` does not exist.", "code": 404}})
                server.routes["GET /v1/models"] = plain(200, {"data": []})
                if server is pair.first:
                    assert tokens(await collect(pair.pool, make_request(session=SESSION))) == [1, 2, 3]
                    assert not pair.pool.lacks_model
            with pytest.raises(EngineLacksModel, match="does not serve m any more"):
                await collect(pair.pool, make_request(session=SESSION))
            assert pair.pool.lacks_model
            assert not await pair.pool.is_healthy()

    asyncio.run(main())


def test_refusal_of_a_proxy_without_its_server_takes_the_server_out() -> None:
    async def main() -> None:
        async with running() as pair:
            pair.first.routes[GENERATE] = pair.first.routes[HEALTH] = plain(503)
            assert tokens(await collect(pair.pool, make_request(session=SESSION))) == [1, 2, 3]
            assert [status.name for status in pair.pool.statuses if not status.is_up] == [pair.first.url]

    asyncio.run(main())


def test_generation_continues_behind_its_tokens_on_the_other_server() -> None:
    async def main() -> None:
        async with running() as pair:
            pair.first.routes[GENERATE] = stream(token(7), token(8))
            request = GenerateRequest("resp_1", [1, 2], Sampling(max_tokens=5), session=SESSION)
            chunks = Generation(pair.pool, request, str, wait=0).chunks()
            assert [token async for chunk in chunks for token in chunk.tokens] == [7, 8, 1, 2, 3]
            body = next(body for route, body in pair.second.requests if route == GENERATE)
            assert (body["token_ids"], body["sampling_params"]["max_tokens"]) == ([1, 2, 7, 8], 3)
            assert body["request_id"] == "resp_1-1-2"

    asyncio.run(main())


def test_server_without_the_model_ends_the_start() -> None:
    async def main() -> None:
        async with serve() as one, serve() as other:
            other.routes["GET /v1/models"] = plain(200, {"data": [{"id": "n", "max_model_len": 128}]})
            pool = open_engine(f"{one.url},{other.url}?model=m&start_wait=0")
            with pytest.raises(EngineUnavailable, match=f"{other.url} serves n, not m"):
                await pool.start()

    asyncio.run(main())


def test_server_with_another_context_length_ends_the_start() -> None:
    async def main() -> None:
        async with serve() as one, serve() as other:
            other.routes["GET /v1/models"] = plain(200, {"data": [{"id": "m", "max_model_len": 64}]})
            pool = open_engine(f"{one.url},{other.url}?model=m&start_wait=0")
            with pytest.raises(EngineUnavailable, match=f"{one.url} has 128, {other.url} has 64"):
                await pool.start()

    asyncio.run(main())


@pytest.mark.parametrize("sent", [(), (7, 8)])
def test_requests_of_a_silent_server_go_to_the_other_until_it_generates_a_token(
    sent: tuple[int, ...], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(silence, "SILENCE_S", 0.2)
    monkeypatch.setattr(silence, "PROBE_S", 0.2)
    monkeypatch.setattr(engine, "WATCH_S", 0.05)

    async def main() -> None:
        async with running() as pair:
            pair.first.routes[GENERATE] = stream(*map(token, sent), hang=True)
            request = GenerateRequest("resp_1", [1, 2], Sampling(max_tokens=5), session=SESSION)
            chunks = Generation(pair.pool, request, str, wait=60).chunks()
            assert [token async for chunk in chunks for token in chunk.tokens] == [*sent, 1, 2, 3]
            assert [status.name for status in pair.pool.statuses if not status.is_up] == [pair.first.url]
            assert "answers health checks and has sent nothing for" in caplog.text
            # Health checks alone do not bring the server back.
            probes = pair.first.count(GENERATE)
            await eventually(lambda: pair.first.count(GENERATE) > probes + 1)
            assert tokens(await collect(pair.pool, make_request(session=SESSION))) == [1, 2, 3]
            pair.first.routes[GENERATE] = WHOLE
            await eventually(lambda: all(status.is_up for status in pair.pool.statuses))

    asyncio.run(main())


def test_server_that_generates_a_token_after_a_silence_stays_in_the_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(silence, "SILENCE_S", 0.2)
    monkeypatch.setattr(engine, "WATCH_S", 0.05)

    async def main() -> None:
        async with running() as pair:

            async def hang_once(_writer: asyncio.StreamWriter) -> None:
                pair.first.routes[GENERATE] = WHOLE
                await asyncio.Event().wait()

            pair.first.routes[GENERATE] = hang_once
            assert tokens(await collect(pair.pool, make_request(session=SESSION))) == [1, 2, 3]
            assert (pair.first.count(GENERATE), pair.second.count(GENERATE)) == (2, 1)
            assert all(status.is_up for status in pair.pool.statuses)

    asyncio.run(main())


def test_requests_wait_if_all_servers_are_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(silence, "SILENCE_S", 0.1)
    monkeypatch.setattr(engine, "WATCH_S", 0.02)

    async def main() -> None:
        async with running() as pair:
            pair.first.routes[GENERATE] = pair.second.routes[GENERATE] = stream(hang=True)
            sessions = ("resp_1", "resp_2", "resp_3", "resp_4", "resp_5", "resp_6")
            tasks = [asyncio.create_task(collect(pair.pool, make_request(session=session))) for session in sessions]
            await eventually(lambda: pair.first.count(GENERATE) and pair.second.count(GENERATE))
            done, _ = await asyncio.wait(tasks, timeout=1.0)
            assert not done
            assert all(status.is_up for status in pair.pool.statuses)
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    asyncio.run(main())
