"""A small ASGI application behind the real door, run as a program: `python -m tests.support.server.echo_app PORT`; it tells what it saw."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import sys
from collections.abc import Awaitable, Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

from responses_app.errors import Unauthorized

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]

CHUNK = b"x" * 8192
made = {"/flood": 0, "/": 0}
# The door, for those who look at it.
doors: list[Any] = []
# Whether WebSockets at /late are accepted.
opened = asyncio.Event()


async def application(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    """Answer by path."""
    if scope["type"] == "websocket":
        if scope["path"] == "/late":
            await opened.wait()
        await _socket(receive, send)
    else:
        await PATHS[scope["path"]](scope, receive, send)


async def _length(_scope: dict[str, Any], receive: Receive, send: Send) -> None:
    total, more = 0, True
    while more:
        message = await receive()
        total, more = total + len(message["body"]), message["more_body"]
    await _answer(send, {"length": total})


async def _flood(_scope: dict[str, Any], _receive: Receive, send: Send) -> None:
    """Send a gigabyte, if anybody takes it."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    for made["/flood"] in range(2**17):
        await send({"type": "http.response.body", "body": CHUNK, "more_body": True})
        await asyncio.sleep(0)


async def _slow(_scope: dict[str, Any], _receive: Receive, send: Send) -> None:
    """One small chunk every tenth of a second, ten times."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    for number in range(10):
        await send({"type": "http.response.body", "body": b"%d\n" % number, "more_body": True})
        await asyncio.sleep(0.1)
    await send({"type": "http.response.body", "body": b"end\n"})


async def _made(_scope: dict[str, Any], _receive: Receive, send: Send) -> None:
    await _answer(send, made)


async def _large(_scope: dict[str, Any], _receive: Receive, send: Send) -> None:
    """Much in one piece, as a long response is."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": bytes(32 * 1024 * 1024)})


async def _wait(_scope: dict[str, Any], receive: Receive, _send: Send) -> None:
    """Say nothing until the client has gone, as one that is queued."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _memory() -> int:
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(status["VmRSS"].split()[0])


async def _state(_scope: dict[str, Any], _receive: Receive, send: Send) -> None:
    """What the clients cost: connections, requests that Daphne remembers, and KiB of memory."""
    (port,) = doors[0].ports
    unfinished = doors[0].budget.totals["process"]
    told = {"connections": len(port.open), "requests": len(doors[0].connections), "memory": _memory(), "unfinished": unfinished}
    await _answer(send, told)


async def _open(_scope: dict[str, Any], _receive: Receive, send: Send) -> None:
    """Let WebSockets at /late be accepted."""
    opened.set()
    await _answer(send, {})


async def _nodelay(scope: dict[str, Any], _receive: Receive, send: Send) -> None:
    """TCP_NODELAY of the connection that this request came by."""
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(int(name))) as one:
            if one.family == socket.AF_INET and list(one.getpeername()) == scope["client"]:
                await _answer(send, {"nodelay": one.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)})


async def _socket(receive: Receive, send: Send) -> None:
    """Accept, and answer each message with its length; `flood` with too much, `sleep` after a while, `twice` twice, and a close."""
    await receive()
    await send({"type": "websocket.accept"})
    while (message := await receive())["type"] == "websocket.receive":
        if message["text"] == "flood":
            for made["/"] in range(2**17):
                await send({"type": "websocket.send", "bytes": CHUNK})
                await asyncio.sleep(0)
        if message["text"] == "sleep":
            await asyncio.sleep(2)
        await send({"type": "websocket.send", "text": str(len(message["text"]))})
        if message["text"] == "twice":
            await send({"type": "websocket.send", "text": "twice"})
            await send({"type": "websocket.close", "code": 1000})


async def _answer(send: Send, body: dict[str, Any]) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": json.dumps(body).encode()})


PATHS = {
    "/length": _length,
    "/flood": _flood,
    "/slow": _slow,
    "/large": _large,
    "/wait": _wait,
    "/made": _made,
    "/state": _state,
    "/nodelay": _nodelay,
    "/open": _open,
}


# Long enough for a busy machine to tell it from no wait at all.
DRAIN = 4.0


def tell(word: str) -> None:
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


class Keys:
    """A gate: at /length any key is known that is not `wrong`, and looked up once; `slow` takes longer than a test."""

    def __init__(self) -> None:
        self.known: set[str] = set()

    def is_api(self, path: str) -> bool:
        return path == "/length"

    def cached_account(self, authorization: str) -> str | None:
        return authorization if authorization in self.known else None

    async def look_up(self, authorization: str) -> str:
        await asyncio.sleep(60 if authorization == "slow" else 0.1)
        if authorization in ("", "wrong"):
            raise Unauthorized("Incorrect API key provided.")
        self.known.add(authorization)
        return authorization


class Idle:
    """A hub without runs, which takes as long to drain as it may."""

    async def start(self) -> None:
        await asyncio.sleep(0)

    def stop_draining(self) -> None:
        pass

    async def drain(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def close(self) -> None:
        tell("closed")


def main(port: int) -> None:
    from responses_app.server.bootstrap.startup import reactor

    loop = reactor()
    from responses_app.local.transport_limits import TransportLimits
    from responses_app.server.http import server as http_server
    from responses_app.server.http import tcp_limits
    from responses_app.server.http.server import tcp
    from responses_app.server.processes.lifecycle import ServerLifecycle

    told = json.loads(os.environ.get("LIMITS", "{}"))
    gate = Keys() if told.pop("keys", False) else None
    limits = TransportLimits(**{field.name: told.pop(field.name) for field in fields(TransportLimits) if field.name in told})
    for name, value in told.items():
        assert hasattr(tcp_limits, name)
        setattr(tcp_limits, name, value)
    opened = http_server.DaphneServer.listen_success
    http_server.DaphneServer.listen_success = lambda self, port: (doors.append(self), opened(self, port))[1]  # type: ignore[method-assign, func-returns-value]
    life = ServerLifecycle(loop, Idle(), drain=DRAIN)
    assert life.start()
    failure = life.listen(application, tcp("127.0.0.1", port), lambda: tell("ready"), gate, limits)
    life.close()
    sys.exit(failure)


if __name__ == "__main__":
    main(int(sys.argv[1]))
