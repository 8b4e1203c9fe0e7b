"""CPU time of a write to a client, from a frame that is committed to the socket.

    python -m bench.writes [--streams 64] [--ticks 800] [--events 1]

Every tick, each of the streams gets `--events` frames. Measured are streams whose run pushes to the connection, the same streams with
an ASGI message for each chunk, and bare writes of Twisted's connection, of ours and of uvloop's.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import os
import selectors
import socket
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

from responses_app.server.bootstrap.startup import reactor

# Turns of the loop that a tick may take: the callbacks of the frames, of the tasks and of the writes.
TURNS = 5
SETTLE_S = 0.3
DELTA = (
    b'{"type":"response.output_text.delta","item_id":"msg_0123456789abcdef0123456789abcdef0123456789abcdef",'
    b'"output_index":0,"content_index":0,"delta":" word","sequence_number":%d,"logprobs":[]}'
)


def _read(port: int, count: int) -> None:
    """Send `count` requests and read until the server closes the connections."""
    selector = selectors.DefaultSelector()
    for _ in range(count):
        client = socket.create_connection(("127.0.0.1", port))
        client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        selector.register(client, selectors.EVENT_READ, client)
    left = count
    while left:
        for key, _ in selector.select():
            if not key.data.recv(65536):
                selector.unregister(key.data)
                left -= 1


def _connect(port: int, count: int) -> None:
    multiprocessing.get_context("fork").Process(target=_read, args=(port, count), daemon=True).start()


async def _ticks(name: str, given: argparse.Namespace, tick: Callable[[int], None]) -> None:
    """Print the CPU time of this process per write."""
    await asyncio.sleep(SETTLE_S)
    began = time.process_time()
    for number in range(given.ticks):
        tick(number)
        for _ in range(TURNS):
            await asyncio.sleep(0)
    cost = 1e6 * (time.process_time() - began) / given.ticks / given.streams
    sys.stdout.write(f"{name:<28} {cost:6.1f} µs a write, {cost / given.events:6.1f} µs an event\n")


async def _streams(given: argparse.Namespace, port: int, broadcasts: list[Any], *, pushed: bool) -> None:
    from responses_app.store.log.records import EventFrame

    first, begun = len(broadcasts), given.streams
    _connect(port, begun)
    while len(broadcasts) < first + begun:
        await asyncio.sleep(SETTLE_S)

    def tick(number: int) -> None:
        numbers = range(1 + number * given.events, 1 + (number + 1) * given.events)
        frames = [EventFrame(one, "response.output_text.delta", DELTA % one) for one in numbers]
        for broadcast in broadcasts[first:]:
            broadcast.broadcast(frames)

    await _ticks("pushed" if pushed else "an ASGI message each", given, tick)


def _write_each(connections: list[Any], data: bytes, _number: int) -> None:
    for connection in connections:
        connection.write(data)


async def _bare(given: argparse.Namespace) -> None:
    """Measure writes without HTTP."""
    from twisted.internet import reactor as twisted_reactor
    from twisted.internet import tcp
    from twisted.internet.protocol import Protocol

    from responses_app.server.http.write_coalescing import CoalescingConnection

    loop, data = asyncio.get_running_loop(), b"x" * 300 * given.events
    port = SimpleNamespace(_realPortNumber=0)
    with socket.create_server(("127.0.0.1", 0), backlog=given.streams) as listening:
        for name, kind in (("Twisted's connection", tcp.Server), ("our connection", CoalescingConnection), ("uvloop's", None)):
            _connect(listening.getsockname()[1], given.streams)
            connections: list[Any] = []
            for _ in range(given.streams):
                accepted, _ = listening.accept()
                accepted.setblocking(False)
                if kind is None:
                    connections.append((await loop.connect_accepted_socket(asyncio.Protocol, accepted))[0])
                else:
                    connections.append(kind(accepted, Protocol(), ("127.0.0.1", 0), port, 0, twisted_reactor))
            await _ticks(name, given, partial(_write_each, connections, data))


async def _measure(given: argparse.Namespace, port: int, broadcasts: list[Any], extension: list[bool]) -> None:
    for pushed in (True, False):
        extension[0] = pushed
        await _streams(given, port, broadcasts, pushed=pushed)
    await _bare(given)
    sys.stdout.flush()
    os._exit(0)


def _application(broadcasts: list[Any], extension: list[bool]) -> Any:
    """Return an application that answers with the stream of a new broadcast."""
    from django.core.handlers.asgi import ASGIHandler

    from responses_app.runs.execute.broadcast import Broadcast
    from responses_app.store.log.records import EventFrame
    from responses_app.wire.event_stream import EventStream
    from responses_app.wire.sse import EventFormat

    handler = ASGIHandler()

    async def application(scope: dict[str, Any], receive: object, send: Any) -> None:
        del receive
        broadcast = Broadcast([EventFrame(0, "response.created", b"{}")])
        broadcasts.append(broadcast)
        request: Any = SimpleNamespace(scope=scope if extension[0] else {})
        await handler.send_response(EventStream(request, lambda push: broadcast.subscribe(push=push), EventFormat(True)), send)

    return application


def main() -> None:
    """Measure each way once, in one process."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("streams", 64), ("ticks", 800), ("events", 1)):
        parser.add_argument(f"--{name}", type=int, default=default)
    given = parser.parse_args()
    loop = reactor()
    with TemporaryDirectory(prefix="verbatim-writes-") as folder:
        os.environ |= {"DJANGO_SETTINGS_MODULE": "project.settings", "RESPONSES_DATA_DIR": str(Path(folder))}
        import django

        django.setup(set_prefix=False)
        from twisted.internet import reactor as twisted_reactor

        from responses_app.server.http.server import DaphneServer, tcp

        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        broadcasts: list[Any] = []
        extension = [True]
        application = _application(broadcasts, extension)
        measured: list[asyncio.Task[None]] = []

        def begin() -> None:
            measured.append(loop.create_task(_measure(given, port, broadcasts, extension)))

        DaphneServer(application, tcp("127.0.0.1", port), lambda: twisted_reactor.callLater(SETTLE_S, begin)).run()


if __name__ == "__main__":
    main()
