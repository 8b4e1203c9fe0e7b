"""MCP server without a library, for answers that no library sends: broken, endless, absent."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeAlias

from tests.support.waiting import run_ready_tasks

# Writes the whole answer to a call of a tool, the status line included.
Answer: TypeAlias = Callable[[asyncio.StreamWriter, dict[str, Any]], Awaitable[None]]

EVENT_PATHS = ("/sse", "/old")
# Answer to `server/discover` of a server of the newer protocol era.
DISCOVERED: dict[str, Any] = {
    "supportedVersions": ["2026-07-28"],
    "capabilities": {"tools": {}},
    "resultType": "complete",
    "ttlMs": 0,
    "cacheScope": "public",
}
_RESULTS: dict[str, Any] = {
    "initialize": {
        "protocolVersion": "2025-06-18",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "raw", "version": "1"},
    },
    "tools/list": {"tools": [{"name": "tool", "inputSchema": {"type": "object"}}]},
}


class RawMcpServer:
    """Server of the older protocol era, over streamable HTTP at `/mcp`, over SSE at `/sse` and `/old`. `answer` answers calls of tools.

    `results` are the results by method. `messages` are the received messages, `headers` the headers of the newest request. Methods in
    `silent` get no answer, and the first message of a method in `first_silent` gets none. With a `session` the server answers other
    sessions with 404.
    """

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.results = dict(_RESULTS)
        self.messages: list[dict[str, Any]] = []
        self.headers: dict[str, str] = {}
        self.port = 0
        self.silent: set[str] = set()
        self.first_silent: set[str] = set()
        self.session: str | None = None
        # Requests that were refused because of their method or path, and the reader of the newest connection with a request.
        self.refused = 0
        self.reader: asyncio.StreamReader | None = None
        self._events: asyncio.StreamWriter | None = None

    def url(self, path: str = "/mcp") -> str:
        """Return the URL of a path."""
        return f"http://127.0.0.1:{self.port}{path}"

    @property
    def methods(self) -> list[str]:
        """Methods of the received messages."""
        return [message.get("method", "") for message in self.messages]

    def send_event(self, message: dict[str, Any]) -> None:
        """Send a message to the client of the older transport."""
        if self._events is not None:
            self._events.write(b"event: message\ndata: " + json.dumps(message).encode() + b"\n\n")

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of a connection."""
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                while not writer.is_closing():
                    await self._serve_request(reader, writer)
        finally:
            writer.transport.abort()

    async def _serve_request(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        self.headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:] if line)}
        method, path, _ = lines[0].split(" ")
        body = await reader.readexactly(int(self.headers.get("content-length", 0)))
        if method == "GET" and path in EVENT_PATHS:
            self._events = writer
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\nevent: endpoint\ndata: /messages\n\n")
            await writer.drain()
            await reader.read()
        elif method != "POST" or path in EVENT_PATHS:
            self.refused += 1
            await respond(writer, 405, b"")
        else:
            self.reader = reader
            await self._serve_message(writer, json.loads(body), is_sse=path == "/messages")

    async def _serve_message(self, writer: asyncio.StreamWriter, message: dict[str, Any], *, is_sse: bool) -> None:
        self.messages.append(message)
        method = message.get("method")
        if method in self.silent | self.first_silent:
            self.first_silent.discard(method)
            await asyncio.Event().wait()
        if self.session is not None and self.headers.get("mcp-session-id", self.session) != self.session:
            await respond(writer, 404, b'{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Session not found"}}')
            return
        if method is None:  # the answer to a request of this server
            await respond(writer, 202, b"")
            return
        if message.get("method") == "tools/call":
            await self.answer(writer, message)
            return
        result = self.results.get(message["method"])
        error = {"code": -32601, "message": "Method not found"}
        reply = {"jsonrpc": "2.0", "id": message.get("id"), **({"result": result} if result else {"error": error})}
        if is_sse and "id" in message:
            self.send_event(reply)
        if is_sse or "id" not in message:
            await respond(writer, 202, b"")
        else:
            session = self.session if message.get("method") == "initialize" else None
            await respond(writer, 200, json.dumps(reply).encode(), mcp_session_id=session or "")


async def respond(writer: asyncio.StreamWriter, status: int, body: bytes, **headers: str) -> None:
    """Write a complete response; header names are written with underscores."""
    fields = {"Content-Type": "application/json", "Content-Length": str(len(body))}
    fields |= {name.replace("_", "-").title(): value for name, value in headers.items()}
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items() if value)
    writer.write(f"HTTP/1.1 {status} X\r\n{head}\r\n".encode() + body)
    await writer.drain()


def reply(**fields: Any) -> Answer:
    """Answer with a JSON-RPC message."""

    async def answer(writer: asyncio.StreamWriter, message: dict[str, Any]) -> None:
        await respond(writer, 200, json.dumps({"jsonrpc": "2.0", "id": message["id"], **fields}).encode())

    return answer


@asynccontextmanager
async def raw_mcp_server(answer: Answer) -> AsyncGenerator[RawMcpServer, None]:
    """Run a server on the loopback interface."""
    raw = RawMcpServer(answer)
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(raw.serve(reader, writer))
        tasks.add(task)
        with suppress(asyncio.CancelledError):
            await asyncio.wait({task})

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    raw.port = listening.sockets[0].getsockname()[1]
    try:
        yield raw
    finally:
        listening.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await run_ready_tasks(3)
