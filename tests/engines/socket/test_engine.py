"""Socket engine against a host in the same process, with recordings as the engine of the host."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from responses_app.engine_interface import (
    Chunk,
    EngineOverloaded,
    EngineUnavailable,
    EngineUnreachable,
    GenerateRequest,
    RequestRejected,
)
from responses_app.engines import open_engine
from responses_app.engines.replay.engine import Delay, Fault, Recording, ReplayEngine, Tokens, recording
from responses_app.engines.socket import client, codec
from responses_app.engines.socket.client import SocketEngine, health
from responses_app.engines.socket.frames import HEADER, FrameSplitter, encode
from responses_app.engines.socket.host import EngineHost
from responses_app.utils import unix_socket
from tests.support.engines.generate import collect, make_request, tokens
from tests.support.waiting import eventually

COUNT = 5000  # Tokens of a stream that fill the buffers of a socket.
IMAGE_TOKENS = 10
MAX_MODEL_LEN = 10_000
FOREVER = Recording([Tokens([1]), Delay(3600), Tokens([2])])
Work = Callable[[SocketEngine, EngineHost], Awaitable[None]]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "engine.sock"


async def begin_host(path: Path, *lines: Recording) -> EngineHost:
    engine = ReplayEngine(lines, loop=True, max_model_len=MAX_MODEL_LEN, image_tokens=IMAGE_TOKENS)
    await engine.start()
    host = EngineHost(engine)
    await host.start(unix_socket.listen(path))
    return host


@asynccontextmanager
async def connected(path: Path, *lines: Recording) -> AsyncIterator[tuple[SocketEngine, EngineHost]]:
    """Yield a connected engine and its host, whose engine replays recordings."""
    host = await begin_host(path, *lines)
    engine = open_engine(f"unix://{path}")
    assert isinstance(engine, SocketEngine)
    await engine.start()
    try:
        yield engine, host
    finally:
        await engine.close()
        await host.close()


def use(path: Path, work: Work, *lines: Recording) -> None:
    async def main() -> None:
        async with connected(path, *lines) as (engine, host):
            await work(engine, host)

    asyncio.run(main())


def test_streams_share_a_connection(path: Path) -> None:
    async def work(engine: SocketEngine, _host: EngineHost) -> None:
        collected = await asyncio.gather(*(collect(engine, make_request(max_tokens=50)) for _ in range(40)))
        assert [tokens(chunks) for chunks in collected] == [[1, 2, 3, 4]] * 40
        assert {chunks[-1].finish for chunks in collected} == {"stop"}
        assert engine.max_model_len == MAX_MODEL_LEN

    use(path, work, recording([1, 2], [3], [4], cached=16))


@pytest.mark.parametrize(("kind", "error"), [("bad", RequestRejected), ("busy", EngineOverloaded), ("down", EngineUnavailable)])
def test_error_of_the_engine_comes_behind_its_tokens(path: Path, kind: Any, error: type[Exception]) -> None:
    received: list[Chunk] = []

    async def receive(engine: SocketEngine) -> None:
        async for chunk in engine.generate(make_request()):
            received.append(chunk)  # noqa: PERF401 - an error must keep what came before

    async def work(engine: SocketEngine, _host: EngineHost) -> None:
        with pytest.raises(error, match="out of order"):
            await receive(engine)

    use(path, work, Recording([Tokens([1, 2]), Tokens([3]), Fault(kind, "out of order")]))
    assert tokens(received) == [1, 2, 3]


class CutEngine(ReplayEngine):
    async def generate(self, request: GenerateRequest) -> AsyncGenerator[Chunk, None]:
        """Generate one token, and then end without a finish."""
        del request
        yield Chunk([1])


def test_stream_of_an_engine_that_ends_it_early_has_failed(path: Path) -> None:
    async def work(engine: SocketEngine, host: EngineHost) -> None:
        for connection in host._connections:
            connection._engine = CutEngine()
        with pytest.raises(EngineUnavailable, match="without a finish"):
            await collect(engine, make_request())

    use(path, work)


def test_stream_that_is_cancelled_in_the_worker_has_failed(path: Path) -> None:
    async def work(engine: SocketEngine, host: EngineHost) -> None:
        chunks = engine.generate(make_request())
        await anext(chunks)
        for connection in host._connections:
            for task in connection._streams.values():
                task.cancel()
        with pytest.raises(EngineUnavailable, match="without a finish"):
            await anext(chunks)

    use(path, work, FOREVER)


def test_error_without_a_json_form_ends_the_connection(path: Path) -> None:
    async def work(engine: SocketEngine, _host: EngineHost) -> None:
        with pytest.raises(EngineUnreachable):
            await collect(engine, make_request())
        await eventually(engine.is_healthy)

    use(path, work, Recording([Tokens([1]), Fault("down", "\udcff")]))


def test_closed_generation_is_aborted_in_the_host(path: Path) -> None:
    async def work(engine: SocketEngine, host: EngineHost) -> None:
        assert isinstance(host.engine, ReplayEngine)
        chunks = engine.generate(make_request(id="left"))
        await anext(chunks)
        await chunks.aclose()
        await eventually(lambda: host.engine.aborted == ["left"])  # type: ignore[attr-defined]
        assert not host.engine.running

    use(path, work, FOREVER)


def test_images_are_counted_by_the_host(path: Path) -> None:
    async def work(engine: SocketEngine, _host: EngineHost) -> None:
        assert await engine.count_tokens([1, 2, 3], [b"one", b"two"]) == 3 + 2 * (IMAGE_TOKENS - 1)
        assert await engine.count_tokens([1, 2, 3], []) == 3

    use(path, work)


def test_request_without_a_json_form_is_rejected(path: Path) -> None:
    async def work(engine: SocketEngine, _host: EngineHost) -> None:
        with pytest.raises(RequestRejected, match="JSON"):
            await collect(engine, make_request(owner="\ud800"))

    use(path, work)


def test_end_of_the_worker_ends_streams_and_a_new_worker_is_used(path: Path) -> None:
    async def work(engine: SocketEngine, host: EngineHost) -> None:
        chunks = engine.generate(make_request())
        await anext(chunks)
        await host.close()
        with pytest.raises(EngineUnreachable):
            [chunk async for chunk in chunks]
        assert not await engine.is_healthy()
        with pytest.raises(EngineUnreachable):
            await collect(engine, make_request())
        again = await begin_host(path, recording([5]))
        await eventually(engine.is_healthy)
        assert tokens(await collect(engine, make_request())) == [5]
        await again.close()

    use(path, work, FOREVER)


class InvalidWorker(asyncio.Protocol):
    def connection_made(self, transport: Any) -> None:
        """Describe a model without facts."""
        transport.write(encode([[codec.MODEL, {}]]))


def test_worker_whose_facts_are_invalid_is_asked_again(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def work(engine: SocketEngine, host: EngineHost) -> None:
        await host.close()
        invalid = await asyncio.get_running_loop().create_unix_server(InvalidWorker, sock=unix_socket.listen(path))
        await eventually(lambda: "cannot be used" in caplog.text)
        invalid.close()
        replaced = await begin_host(path, recording([1]))
        await eventually(engine.is_healthy)
        assert tokens(await collect(engine, make_request())) == [1]
        await engine.close()
        await replaced.close()

    use(path, work)


def test_start_without_a_worker_needs_the_context_length(path: Path) -> None:
    async def main() -> None:
        with pytest.raises(EngineUnreachable, match="no engine worker answers"):
            await SocketEngine(str(path)).start()
        engine = SocketEngine(str(path), max_model_len=99)
        await engine.start()
        assert (engine.max_model_len, await engine.is_healthy()) == (99, False)
        await engine.close()
        assert await health(path, 1.0) is None

    asyncio.run(main())


def test_connection_to_a_worker_that_hangs_is_closed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert await reader.read() == b""
        writer.close()
        ended.set()

    async def main() -> None:
        async with await asyncio.start_unix_server(accept, path):
            with pytest.raises(EngineUnreachable, match="TimeoutError"):
                await SocketEngine(str(path)).connect()
            await asyncio.wait_for(ended.wait(), 60)

    monkeypatch.setattr(client, "CONNECT_S", 0.05)
    ended = asyncio.Event()
    asyncio.run(main())


def test_silent_worker_counts_as_dead(path: Path) -> None:
    async def describe(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(encode([["model", {"max_model_len": 99, "supports_images": False}]]))
        await writer.drain()
        writers.append(writer)

    async def main() -> None:
        async with await asyncio.start_unix_server(describe, path):
            engine = SocketEngine(str(path), watch_s=0.01, hung_s=0.05)
            await engine.start()
            with pytest.raises(EngineUnreachable, match="broke off"):
                await collect(engine, make_request())
            await engine.close()
            for writer in writers:
                writer.close()

    writers: list[asyncio.StreamWriter] = []
    asyncio.run(main())


def test_silent_worker_is_not_healthy_until_the_answer_to_the_ping(path: Path) -> None:
    async def describe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(encode([["model", {"max_model_len": 99, "supports_images": False}]]))
        assert await reader.readexactly(len(ping)) == ping
        await goes_on.wait()
        writer.write(encode([["pong"]]))
        # One ping for all health checks that wait.
        assert await reader.read() == b""
        writer.close()
        ended.set()

    async def main() -> None:
        async with await asyncio.start_unix_server(describe, path):
            engine = SocketEngine(str(path), watch_s=0.0, answer_s=0.01)
            await engine.start()
            assert not await engine.is_healthy()
            assert not any(await asyncio.gather(engine.is_healthy(), engine.is_healthy()))
            engine._answer_s = 60.0
            check = asyncio.create_task(engine.is_healthy())
            goes_on.set()
            assert await check
            await engine.close()
            assert not await engine.is_healthy()
            await ended.wait()

    ping, goes_on, ended = encode([["ping"]]), asyncio.Event(), asyncio.Event()
    asyncio.run(main())


def test_idle_worker_answers_health_checks(path: Path) -> None:
    async def work(engine: SocketEngine, _host: EngineHost) -> None:
        connection = engine._connection
        assert connection is not None
        assert await connection.answers(fresh_s=0.0, limit_s=60.0)
        assert await engine.is_healthy()

    use(path, work, recording([1]))


def test_worker_whose_engine_hangs_is_not_healthy(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def is_healthy() -> bool:
        return states.pop(0)

    async def work(engine: SocketEngine, host: EngineHost) -> None:
        monkeypatch.setattr(host.engine, "is_healthy", is_healthy)
        engine._watch_s = 0.0
        assert not await engine.is_healthy()
        engine._watch_s = 60.0
        assert not await engine.is_healthy(), "the last answer is fresh"
        assert tokens(await collect(engine, make_request())) == [1]
        engine._watch_s = 0.0
        assert await engine.is_healthy()

    states = [False, True]
    use(path, work, recording([1]))


@pytest.mark.parametrize("content", [HEADER.pack(2, 0) + b"{}", encode([["generate", 1, {}]]), encode([["what"]])])
def test_connection_with_invalid_messages_is_closed_and_others_go_on(path: Path, content: bytes) -> None:
    async def work(engine: SocketEngine, _host: EngineHost) -> None:
        reader, writer = await asyncio.open_unix_connection(path)
        writer.write(content)
        with contextlib.suppress(ConnectionResetError):
            await reader.read()
        writer.close()
        assert tokens(await collect(engine, make_request())) == [1]

    use(path, work, recording([1]))


def test_web_process_that_does_not_read_gets_all_tokens_later(path: Path) -> None:
    """Let the host write more than the buffers of the socket take, while the other end does not read."""

    async def work(_engine: SocketEngine, host: EngineHost) -> None:
        reader, writer = await asyncio.open_unix_connection(path)
        for number in range(1, 9):
            values, body = codec.encode_request(make_request(max_tokens=COUNT))
            writer.write(encode([["generate", number, values]], body))
        await eventually(lambda: not host.engine.running and len(host.engine.requests) == 8)  # type: ignore[attr-defined]
        splitter, count = FrameSplitter(), 0
        while count < 8 * COUNT:
            data = await reader.read(1 << 16)
            assert data
            for messages, _ in splitter.feed(data):
                count += sum(len(message[2]) for message in messages if message[0] == "chunk")
        writer.close()

    use(path, work, recording(*([2**31] for _ in range(COUNT))))
