"""Reverse proxy in front of several servers: sticky by a header, without buffering, closes both ways."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit

from responses_app.engines.pool.rendezvous import ranking


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
