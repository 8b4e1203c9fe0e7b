"""HTTP proxy with the faults of proxies that are set up wrongly: buffering, a body limit, no upgrades, another host."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from tests.support.server.serve_command import free_port

HEAD_END = b"\r\n\r\n"
TOO_LARGE = (
    b"HTTP/1.1 413 Request Entity Too Large\r\nContent-Type: text/html\r\nContent-Length: 5\r\nConnection: close\r\n\r\n<413>"
)


@dataclass(frozen=True, slots=True)
class ProxyFaults:
    """Faults of a proxy. `closes_after_s` ends each connection of an upgrade after so many seconds."""

    buffers: bool = False
    body_limit: int | None = None
    drops_upgrade: bool = False
    replaces_host: bool = False
    closes_after_s: float | None = None


@contextmanager
def faulty_proxy(upstream_port: int, faults: ProxyFaults) -> Iterator[str]:
    """Run a proxy in front of a port of 127.0.0.1, and yield its URL. Each connection carries one request."""
    port, started, loops = free_port(), threading.Event(), list[asyncio.AbstractEventLoop]()
    stopping = asyncio.Event()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(OSError, asyncio.IncompleteReadError):
                await _serve(reader, writer, upstream_port, faults)
        finally:
            writer.transport.abort()

    async def run() -> None:
        async with await asyncio.start_server(handle, "127.0.0.1", port, limit=1 << 20):
            loops.append(asyncio.get_running_loop())
            started.set()
            await stopping.wait()

    thread = threading.Thread(target=asyncio.run, args=(run(),), daemon=True)
    thread.start()
    started.wait()
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        loops[0].call_soon_threadsafe(stopping.set)
        thread.join()


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int, faults: ProxyFaults) -> None:
    head = await reader.readuntil(HEAD_END)
    length = int(match[1]) if (match := re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)) else 0
    if faults.body_limit is not None and length > faults.body_limit:
        await reader.readexactly(length)
        writer.write(TOO_LARGE)
        await writer.drain()
        return
    is_upgrade = b"websocket" in head.lower() and not faults.drops_upgrade
    if not is_upgrade:
        head = re.sub(rb"(?i)\r\n(connection|upgrade): [^\r]*", b"", head).replace(
            HEAD_END, b"\r\nConnection: close" + HEAD_END
        )
    if faults.replaces_host:
        head = re.sub(rb"(?i)\r\nhost: [^\r]*", b"\r\nHost: upstream.internal", head)
    upstream, to_upstream = await asyncio.open_connection("127.0.0.1", port)
    to_upstream.write(head)
    try:
        async with asyncio.TaskGroup() as group:
            sending = group.create_task(_copy(reader, to_upstream))
            with suppress(TimeoutError):
                async with asyncio.timeout(faults.closes_after_s if is_upgrade else None):
                    await _copy(upstream, writer, buffered=faults.buffers and not is_upgrade)
            sending.cancel()
    finally:
        to_upstream.transport.abort()
        await _drained(writer)


async def _drained(writer: asyncio.StreamWriter) -> None:
    """Close a connection when all bytes are sent."""
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, buffered: bool = False) -> None:
    pieces = []
    while data := await reader.read(65_536):
        if buffered:
            pieces.append(data)
        else:
            writer.write(data)
            await writer.drain()
    writer.write(b"".join(pieces))
    await writer.drain()
