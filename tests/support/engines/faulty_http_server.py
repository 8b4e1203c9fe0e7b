"""Minimal HTTP server with failures that a real vLLM rarely shows on demand."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from tests.support.waiting import eventually

GENERATE, ABORT, HEALTH = "POST /inference/v1/generate", "POST /inference/v1/abort_requests", "GET /health"
Reply = Callable[[asyncio.StreamWriter], Awaitable[None]]

MODELS = {
    "data": [
        {"id": "m", "root": "/models/m", "max_model_len": 128},
        {"id": "n", "root": "/models/n", "max_model_len": 64},
        {"id": "adapter", "root": "/adapters/one", "parent": "n", "max_model_len": None},
    ]
}


def plain(status: int, body: Any = None, *, headers: str = "") -> Reply:
    """Create an ordinary response. `headers` are further lines, each with its line end."""

    async def reply(writer: asyncio.StreamWriter) -> None:
        content = json.dumps(body).encode()
        writer.write(
            f"HTTP/1.1 {status} X\r\nContent-Length: {len(content)}\r\nConnection: close\r\n{headers}\r\n".encode() + content
        )

    return reply


def stream(*events: Any, hang: bool = False) -> Reply:
    """Create a stream of server-sent events that breaks off, or hangs."""

    async def reply(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
        for event in events:
            writer.write(b"data: " + (event if isinstance(event, bytes) else json.dumps(event).encode()) + b"\n\n")
            await writer.drain()
        if hang:
            await asyncio.Event().wait()

    return reply


def token(number: int, finish: str | None = None) -> dict[str, Any]:
    return {"choices": [{"index": 0, "token_ids": [number], "finish_reason": finish}]}


@dataclass
class FaultyServer:
    """Server with routes by `METHOD path`; `requests` are the received requests with their bodies."""

    routes: dict[str, Reply]
    url: str = ""
    requests: list[tuple[str, Any]] = field(default_factory=list)
    headers: list[str] = field(default_factory=list)
    writers: list[asyncio.StreamWriter] = field(default_factory=list)
    hung_up: asyncio.Event = field(default_factory=asyncio.Event)

    def count(self, route: str) -> int:
        """Return the number of received requests of a route."""
        return [received for received, _ in self.requests].count(route)

    async def wait_for_request(self, route: str) -> None:
        """Wait until a request of a route has been received."""
        await eventually(lambda: self.count(route))

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.append(writer)
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            self.headers.append(head)
            length = next(
                (int(line.split(":")[1]) for line in head.split("\r\n") if line.lower().startswith("content-length")), 0
            )
            body = await reader.readexactly(length)
            route = " ".join(head.split(" ")[:2])
            self.requests.append((route, json.loads(body) if body else None))
            reply = asyncio.ensure_future(self.routes.get(route, plain(404, {"detail": "Not Found"}))(writer))
            gone = asyncio.ensure_future(reader.read())
            await asyncio.wait({reply, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not reply.done():
                self.hung_up.set()
            reply.cancel()
            gone.cancel()
        writer.close()


@asynccontextmanager
async def serve(generate: Reply | None = None, port: int = 0) -> AsyncIterator[FaultyServer]:
    """Run a server with two models; `generate` answers generations. On exit all connections are aborted."""
    stub = FaultyServer(
        {
            "GET /v1/models": plain(200, MODELS),
            HEALTH: plain(200),
            ABORT: plain(200),
            GENERATE: generate or plain(404),
        }
    )
    server = await asyncio.start_server(stub.answer, "127.0.0.1", port)
    stub.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server:
        yield stub
        for writer in stub.writers:
            writer.transport.abort()
