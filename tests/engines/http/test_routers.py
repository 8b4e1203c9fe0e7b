"""HTTP engine behind a router: the session header determines the server, and a closed generation closes the way through."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit

from responses_app.engines import open_engine
from responses_app.engines.pool.member import ranking
from tests.support.engines.faulty_http_server import GENERATE, serve, stream, token
from tests.support.engines.generate import collect, make_request, tokens
from tests.support.waiting import LIMIT_S


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()


@asynccontextmanager
async def proxying(urls: Sequence[str], header: str) -> AsyncIterator[str]:
    """Run a proxy, and yield its URL. A connection belongs to the server that the first request's `header` prefers."""
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            lines = (line.partition(":") for line in head.decode().split("\r\n"))
            session = next((value.strip() for name, _, value in lines if name.lower() == header.lower()), "")
            place = urlsplit(ranking(session, urls)[0])
            upstream_reader, upstream_writer = await asyncio.open_connection(place.hostname, place.port)
            upstream_writer.write(head)
            for pair in ((reader, upstream_writer), (upstream_reader, writer)):
                task = asyncio.create_task(_copy(*pair))
                tasks.add(task)
                task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        for task in tasks:
            task.cancel()


WHOLE = stream(token(1), token(2, "length"), b"[DONE]")
HEADER = "X-Sticky"


def test_router_sends_all_turns_of_a_session_to_one_server() -> None:
    async def main() -> None:
        async with serve(WHOLE) as one, serve(WHOLE) as other, proxying([one.url, other.url], HEADER) as url:
            engine = open_engine(f"{url}?model=m&session_header={HEADER}")
            await engine.start()
            # The ports decide which server a session prefers: of so many, both have some.
            sessions = [f"resp_{number}" for number in range(30)]
            for session in sessions * 2:
                assert tokens(await collect(engine, make_request(session=session))) == [1, 2]
            preferred = [ranking(session, [one.url, other.url])[0] for session in sessions]
            assert set(preferred) == {one.url, other.url}
            assert [server.count(GENERATE) for server in (one, other)] == [
                2 * preferred.count(server.url) for server in (one, other)
            ]
            await engine.close()

    asyncio.run(main())


def test_closed_generation_closes_the_connection_behind_the_router() -> None:
    async def main() -> None:
        async with serve(stream(token(1), hang=True)) as server, proxying([server.url], HEADER) as url:
            engine = open_engine(f"{url}?model=m")
            await engine.start()
            chunks = engine.generate(make_request())
            await anext(chunks)
            await chunks.aclose()
            await asyncio.wait_for(server.hung_up.wait(), LIMIT_S)
            await engine.close()

    asyncio.run(main())
