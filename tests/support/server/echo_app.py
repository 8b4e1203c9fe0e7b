"""ASGI application behind the real HTTP server, run as a program: `python -m tests.support.server.echo_app PORT`."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import django

from responses_app.errors import Unauthorized
from responses_app.observability.events import Observer, add_observer
from responses_app.observability.records import ObservedRequest
from responses_app.wire.asgi_extensions import direct_writer
from tests.support.server.open_gate import OpenGate
from tests.support.server.pushed_pieces import push, pushed

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]

CHUNK = b"x" * 8192
# Time for the load on the machine that the shutdown may take without a second signal; longer than any test waits.
DRAIN = 60.0
# Daphne checks the limits of connections every two seconds. More frequent checks let the tests set short limits.
CHECK_S = 0.1
# Daphne lets an application run on for ten seconds after its client has disconnected.
CLOSE_S = 1
# `refused` has the milliseconds of the last request that was refused before the application.
made = {"/flood": 0, "/": 0, "refused": 0}
# The running HTTP server.
servers: list[Any] = []
# Whether WebSockets at /late are accepted.
opened = asyncio.Event()
# Set for a moment by /release: WebSockets that are busy go on. `busy` is their number.
released = asyncio.Event()
busy = {"count": 0}
# Set at the end of a stream of /slow, for which the shutdown waits.
streamed = asyncio.Event()


async def application(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    """Answer by path."""
    if scope["type"] == "websocket":
        if scope["path"] == "/late":
            await opened.wait()
        await _socket(scope, receive, send)
    else:
        await PATHS[scope["path"]](scope, receive, send)


async def _length(_scope: dict[str, Any], receive: Receive, send: Send) -> None:
    total, more = 0, True
    while more:
        message = await receive()
        total, more = total + len(message["body"]), message["more_body"]
    await _answer(send, {"length": total})


async def _flood(_scope: dict[str, Any], _receive: Receive, send: Send) -> None:
    """Send a gigabyte, as far as the client reads."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    for made["/flood"] in range(2**17):
        await send({"type": "http.response.body", "body": CHUNK, "more_body": True})
        await asyncio.sleep(0)


async def _slow(_scope: dict[str, Any], _receive: Receive, send: Send) -> None:
    """Send a small chunk every tenth of a second, ten times."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    for number in range(10):
        await send({"type": "http.response.body", "body": b"%d\n" % number, "more_body": True})
        await pause(0.1)
    await send({"type": "http.response.body", "body": b"end\n"})
    streamed.set()


async def _made(_scope: dict[str, Any], _receive: Receive, send: Send) -> None:
    await _answer(send, made)


async def _large(_scope: dict[str, Any], _receive: Receive, send: Send) -> None:
    """Send 32 MiB in a single message, as for a long response."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": bytes(32 * 1024 * 1024)})


async def _wait(_scope: dict[str, Any], receive: Receive, _send: Send) -> None:
    """Send no answer until the client has disconnected, as for a queued response."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _memory() -> int:
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(status["VmRSS"].split()[0])


async def _state(_scope: dict[str, Any], _receive: Receive, send: Send) -> None:
    """Answer with the costs of the clients: among others the requests that Daphne remembers, and KiB of memory."""
    (port,) = servers[0].ports
    state = {
        "connections": len(port.open),
        "requests": len(servers[0].connections),
        "memory": _memory(),
        "unfinished": servers[0].budget.totals["process"],
        "paused": sum(bool(connection.producerPaused) for connection in port.open),
        "busy": busy["count"],
        **pushed,
    }
    await _answer(send, state)


async def _limited(_scope: dict[str, Any], _receive: Receive, send: Send) -> None:
    """Answer with the status of a rate limit."""
    await send({"type": "http.response.start", "status": 429, "headers": []})
    await send({"type": "http.response.body", "body": b"{}"})


async def _open(_scope: dict[str, Any], _receive: Receive, send: Send) -> None:
    """Let WebSockets at /late be accepted."""
    opened.set()
    await _answer(send, {})


async def _release(_scope: dict[str, Any], _receive: Receive, send: Send) -> None:
    """Let the WebSockets that are busy go on."""
    released.set()
    released.clear()
    await _answer(send, {})


async def _nodelay(scope: dict[str, Any], _receive: Receive, send: Send) -> None:
    """Answer with TCP_NODELAY of the connection of this request."""
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(int(name))) as one:
            if one.family == socket.AF_INET and list(one.getpeername()) == scope["client"]:
                await _answer(send, {"nodelay": one.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)})


async def _socket(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    """Accept, and answer each message with its length.

    `flood` is answered with a gigabyte before, `push` with three messages of the DirectWriter, `busy` after the next GET /release,
    `twice` with two messages and a close.
    """
    await receive()
    await send({"type": "websocket.accept"})
    while (message := await receive())["type"] == "websocket.receive":
        if message["text"] == "flood":
            for made["/"] in range(2**17):
                await send({"type": "websocket.send", "bytes": CHUNK})
                await asyncio.sleep(0)
        if message["text"] == "push":
            writer = direct_writer(scope)
            assert writer is not None
            assert writer.can_write_now()
            writer.write_now([b"one", b"x" * 200, b"x" * 70_000])
        if message["text"] == "busy":
            busy["count"] += 1
            try:
                await released.wait()
            finally:
                busy["count"] -= 1
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
    "/push": push,
    "/slow": _slow,
    "/large": _large,
    "/wait": _wait,
    "/made": _made,
    "/state": _state,
    "/nodelay": _nodelay,
    "/limited": _limited,
    "/open": _open,
    "/release": _release,
}


async def pause(seconds: float) -> None:
    """Let `seconds` pass for the clients.

    Real time: a stream that lasts while other clients misbehave, and a query of a database that the body of a request overtakes.
    """
    await asyncio.sleep(seconds)


def print_line(word: str) -> None:
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


class ScriptedGate(OpenGate):
    """Gate of /length: every key but `wrong` is valid and looked up once; the lookup of `slow` does not end."""

    def __init__(self) -> None:
        self.known: set[str] = set()

    def is_api(self, path: str) -> bool:
        return path == "/length"

    def is_upload(self, method: str, path: str) -> bool:
        return False

    def cached_account(self, authorization: str) -> str | None:
        return authorization if authorization in self.known else None

    async def look_up(self, authorization: str) -> str:
        await (asyncio.Event().wait() if authorization == "slow" else pause(0.1))
        if authorization in ("", "wrong"):
            raise Unauthorized("Incorrect API key provided.")
        self.known.add(authorization)
        return authorization


class StreamManager:
    """Run manager without runs; its `drain` ends with a stream of /slow, or after the given time."""

    is_leaving_soon = False

    async def start(self) -> None:
        await asyncio.sleep(0)

    def stop_draining(self) -> None:
        pass

    async def drain(self, seconds: float, may_come: Callable[[], bool]) -> None:
        print_line("draining")
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(streamed.wait(), seconds)

    async def close(self) -> None:
        print_line("closed")


def check_often(loop: asyncio.AbstractEventLoop, server: Any) -> None:
    """Check the limits of the connections now and every `CHECK_S` seconds."""
    for port in server.ports:
        for connection in list(port.open):
            connection.check_timeouts(time.monotonic())
    for protocol in list(server.connections):
        protocol.check_timeouts()
    loop.call_later(CHECK_S, check_often, loop, server)


class RefusalTimes(Observer):
    """Observer that keeps the milliseconds of HTTP requests with status 401."""

    def request_ended(self, record: ObservedRequest) -> None:
        if record.status == Unauthorized.status:
            made["refused"] = int((time.monotonic() - record.began) * 1000)


def main(port: int) -> None:
    from responses_app.server.processes.startup import reactor

    loop = reactor()
    # The errors of the transport read a model of Django.
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
    django.setup()
    from responses_app.server.http import server as http_server
    from responses_app.server.http import tcp_limits
    from responses_app.server.http.server import tcp
    from responses_app.server.processes.lifecycle import ServerLifecycle
    from responses_app.wire.transport_limits import TransportLimits

    options = json.loads(os.environ.get("LIMITS", "{}"))
    add_observer(RefusalTimes())
    gate = ScriptedGate() if options.pop("keys", False) else OpenGate()
    limits = TransportLimits(
        **{field.name: options.pop(field.name) for field in fields(TransportLimits) if field.name in options}
    )
    for name, value in options.items():
        assert hasattr(tcp_limits, name)
        setattr(tcp_limits, name, value)
    listen_success = http_server.DaphneServer.listen_success

    def remember(self: http_server.DaphneServer, port: Any) -> None:
        servers.append(self)
        self.application_close_timeout = CLOSE_S
        listen_success(self, port)
        check_often(loop, self)

    http_server.DaphneServer.listen_success = remember  # type: ignore[method-assign]
    life = ServerLifecycle(loop, StreamManager(), drain=DRAIN)
    assert life.start()
    failure = life.listen(application, tcp("127.0.0.1", port), lambda: print_line("ready"), gate, limits)
    life.close()
    sys.exit(failure)


if __name__ == "__main__":
    main(int(sys.argv[1]))
