"""HTTP engine with a failing server."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from responses_app.engine_interface import Chunk, EngineLacksModel, EngineUnavailable, RequestRejected
from responses_app.engines import open_engine
from responses_app.engines.http.client import HttpVllm
from tests.support.engines.faulty_http_server import ABORT, GENERATE, FaultyServer, Reply, plain, serve, stream, token
from tests.support.engines.generate import collect, make_request, tokens


def with_stub(reply: Reply, play: Callable[[HttpVllm, FaultyServer], Awaitable[None]]) -> None:
    """Run `play` on a started engine with a stub server that answers generations with `reply`."""

    async def main() -> None:
        async with serve(generate=reply) as stub:
            engine = HttpVllm(stub.url)
            await engine.start()
            try:
                await play(engine, stub)
            finally:
                await engine.close()

    asyncio.run(main())


def test_engine_takes_the_first_model_and_its_properties() -> None:
    async def play(engine: HttpVllm, stub: FaultyServer) -> None:
        assert (engine.model, engine.root, engine.max_model_len) == ("m", "/models/m", 128)
        assert await engine.is_healthy()

    with_stub(plain(500), play)


@pytest.mark.parametrize("model", ["n", "adapter"])
def test_model_and_key_of_the_url_are_used(model: str) -> None:
    """The adapter has no length in the list of vLLM: it has the length of its parent."""

    async def main() -> None:
        async with serve() as stub:
            engine = open_engine(stub.url.replace("http://", "http://:s3cret@") + f"?model={model}")
            await engine.start()
            assert engine.max_model_len == 64
            await engine.close()
            assert all("authorization: bearer s3cret" in head.lower() for head in stub.headers)
            assert len(stub.headers) == 2

    asyncio.run(main())


@pytest.mark.parametrize(
    ("url", "route", "reply", "words"),
    [
        ("?model=q", None, None, "serves m, n, adapter, not q"),
        ("?start_wait=0", "GET /v1/models", plain(503), "HTTP 503"),
        ("", "GET /v1/models", plain(401, {"error": "Unauthorized"}), r"refuses the key \(HTTP 401\): write its key"),
        ("", "GET /v1/models", plain(200, {"hello": 1}), "no list of models"),
        ("", "GET /v1/models", plain(200, {"data": []}), "serves nothing"),
        ("", "GET /v1/models", plain(200, {"data": [{"id": "m"}]}), "max_model_len"),
        ("/v1", None, None, r"give its URL without /v1, as in http://127\.0\.0\.1:\d+$"),
        ("", ABORT, plain(404), "--enable-scale-out"),
    ],
)
def test_start_failure_has_reason(url: str, route: str | None, reply: Reply, words: str) -> None:
    async def main() -> None:
        async with serve() as stub:
            if route:
                stub.routes[route] = reply
            engine = open_engine(stub.url + url)
            with pytest.raises(EngineUnavailable, match=words):
                await engine.start()
            assert not await engine.is_healthy()

    asyncio.run(main())


def test_engine_does_not_start_without_a_server() -> None:
    engine = HttpVllm("http://127.0.0.1:9")
    with pytest.raises(EngineUnavailable, match="ConnectError"):
        asyncio.run(engine.start())
    with pytest.raises(EngineUnavailable, match="not connected"):
        engine.max_model_len  # noqa: B018


def test_stream_is_parsed_to_the_end() -> None:
    async def play(engine: HttpVllm, stub: FaultyServer) -> None:
        chunks = await collect(engine, make_request(id="whole"))
        assert tokens(chunks) == [1, 2]
        assert chunks[-1] == Chunk(finish="length")
        await engine.close()  # Waits for aborts under way.
        assert stub.count(ABORT) == 1, "that of the start only"

    with_stub(stream(token(1), token(2, "length"), b"[DONE]"), play)


@pytest.mark.parametrize(
    ("reply", "kind", "words"),
    [
        (plain(400, {"error": {"message": "too long"}}), RequestRejected, "too long"),
        (plain(500), EngineUnavailable, "HTTP 500"),
        (plain(404, {"detail": "Not Found"}), EngineUnavailable, "HTTP 404"),
        (stream(token(1)), EngineUnavailable, "broke off"),
        (stream({"error": {"message": "vocabulary", "code": 400}}), RequestRejected, "vocabulary"),
    ],
)
def test_error_maps_to_exception(reply: Reply, kind: type[Exception], words: str) -> None:
    async def play(engine: HttpVllm, stub: FaultyServer) -> None:
        with pytest.raises(kind, match=words):
            await collect(engine, make_request())

    with_stub(reply, play)


def test_removed_model_is_missed_until_the_server_lists_it_again() -> None:
    async def play(engine: HttpVllm, stub: FaultyServer) -> None:
        models = stub.routes["GET /v1/models"]
        stub.routes["GET /v1/models"] = plain(200, {"data": [{"id": "n", "max_model_len": 64}]})
        with pytest.raises(
            EngineLacksModel, match=r"127.0.0.1:\d+ does not serve m any more: HTTP 404: The model `m` does not"
        ):
            await collect(engine, make_request())
        assert not await engine.is_healthy()
        assert engine.lacks_model
        stub.routes["GET /v1/models"] = models
        assert await engine.is_healthy()
        assert not engine.lacks_model

    with_stub(plain(404, {"error": {"message": "The model `m` does not exist.", "code": 404}}), play)


def test_engine_that_refuses_the_key_is_away_until_it_takes_the_key(caplog: pytest.LogCaptureFixture) -> None:
    async def play(engine: HttpVllm, stub: FaultyServer) -> None:
        models, refused = stub.routes["GET /v1/models"], plain(401, {"error": "Unauthorized"})
        stub.routes["GET /v1/models"] = refused
        with pytest.raises(EngineUnavailable, match=r"^the engine refuses the key of this server \(HTTP 401\)$"):
            await collect(engine, make_request())
        assert not await engine.is_healthy()
        assert not engine.lacks_model
        stub.routes["GET /v1/models"] = models
        assert await engine.is_healthy()

    with_stub(plain(401, {"error": "Unauthorized"}), play)
    assert [record.levelname for record in caplog.records if "write its key as" in record.getMessage()] == ["ERROR"]


def test_early_close_disconnects_and_aborts() -> None:
    async def play(engine: HttpVllm, stub: FaultyServer) -> None:
        chunks = engine.generate(make_request(id="early"))
        assert await anext(chunks) == Chunk((1,))
        await chunks.aclose()
        await asyncio.wait_for(stub.hung_up.wait(), 60)
        await engine.close()  # Waits for aborts under way.
        assert stub.requests[-1] == (ABORT, {"request_ids": ["generate-tokens-early"]})

    with_stub(stream(token(1), hang=True), play)


def test_cancellation_before_the_first_token_aborts() -> None:
    async def play(engine: HttpVllm, stub: FaultyServer) -> None:
        task = asyncio.create_task(collect(engine, make_request(id="waiting")))
        await stub.wait_for_request(GENERATE)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(stub.hung_up.wait(), 60)
        await engine.close()  # Waits for aborts under way.
        assert stub.requests[-1] == (ABORT, {"request_ids": ["generate-tokens-waiting"]})

    with_stub(stream(hang=True), play)


def test_close_ends_running_generations() -> None:
    async def play(engine: HttpVllm, stub: FaultyServer) -> None:
        task = asyncio.create_task(collect(engine, make_request(id="last")))
        await stub.wait_for_request(GENERATE)
        await engine.close()
        with pytest.raises(EngineUnavailable):
            await task
        assert (ABORT, {"request_ids": ["generate-tokens-last"]}) in stub.requests
        assert not await engine.is_healthy()

    with_stub(stream(token(1), hang=True), play)


@pytest.mark.slow
def test_engine_runs_three_hundred_generations_at_once() -> None:
    async def play(engine: HttpVllm, stub: FaultyServer) -> None:
        running = [engine.generate(make_request()) for _ in range(300)]
        first = await asyncio.wait_for(asyncio.gather(*(anext(chunks) for chunks in running)), 30)
        assert {chunk.tokens for chunk in first} == {(1,)}
        await asyncio.gather(*(chunks.aclose() for chunks in running))

    with_stub(stream(token(1), hang=True), play)
