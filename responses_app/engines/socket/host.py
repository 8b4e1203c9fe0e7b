"""Host of an engine: serves one engine to the web processes of this machine, over a Unix socket.

The chunks of all streams of a web process that come in one turn of the event loop, as those of one step of the engine do, leave in one
frame.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from contextlib import aclosing
from typing import Any, cast

from responses_app.engine_interface import Engine, EngineError, EngineUnavailable, GenerateRequest
from responses_app.engines.socket import codec
from responses_app.engines.socket.frames import FrameSplitter, InvalidFrame, encode

logger = logging.getLogger(__name__)

PINGS = 0  # Clients count their streams from 1.


class EngineHost:
    """Host of a started engine. Access is limited by the mode of the socket."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._server: asyncio.AbstractServer | None = None
        self._connections: set[_Connection] = set()

    async def start(self, listening: socket.socket) -> None:
        """Accept connections of a listening Unix socket."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_unix_server(lambda: _Connection(self.engine, self._connections), sock=listening)

    async def close(self) -> None:
        """Close all connections, which aborts their streams."""
        if self._server is not None:
            self._server.close()
        tasks = {task for connection in self._connections for task in connection.close()}
        if tasks:
            await asyncio.wait(tasks)


class _Connection(asyncio.Protocol):
    """Connection of a web process."""

    def __init__(self, engine: Engine, connections: set[_Connection]) -> None:
        self._engine, self._connections = engine, connections
        self._splitter = FrameSplitter()
        self._streams: dict[int, asyncio.Task[None]] = {}
        self._outgoing: list[Any] = []
        self._is_scheduled = self._is_paused = False
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # The transports of uvloop are no subclasses.
        self._transport = cast("asyncio.Transport", transport)
        self._connections.add(self)
        try:
            facts = {"max_model_len": self._engine.max_model_len, "supports_images": self._engine.supports_images}
        except EngineUnavailable:
            return self._transport.abort()
        self._send([codec.MODEL, facts])

    def connection_lost(self, _error: Exception | None) -> None:
        self._transport = None
        self._connections.discard(self)
        for task in self._streams.values():
            task.cancel()

    def pause_writing(self) -> None:
        self._is_paused = True

    def resume_writing(self) -> None:
        self._is_paused = False
        self._flush()

    def data_received(self, data: bytes) -> None:
        try:
            for messages, body in self._splitter.feed(data):
                for message in messages:
                    self._receive(message, body)
        except (InvalidFrame, LookupError, TypeError, ValueError) as error:
            logger.error("a web process sent no valid request, its connection is closed: %r", error)
            self.close()

    def close(self) -> list[asyncio.Task[None]]:
        """Close the connection. Return the tasks of the streams, which are cancelled."""
        tasks = list(self._streams.values())
        for task in tasks:
            task.cancel()
        if self._transport is not None:
            self._transport.abort()
        return tasks

    def _receive(self, message: list[Any], body: bytes) -> None:
        match message:
            case [codec.GENERATE, int(stream), dict(values)]:
                self._begin(stream, self._generate(stream, codec.decode_request(values, body)))
            case [codec.COUNT, int(stream), dict(values)]:
                self._begin(stream, self._count(stream, codec.decode_request(values, body)))
            case [codec.ABORT, int(stream)]:
                if task := self._streams.get(stream):
                    task.cancel()
            case [codec.PING]:
                self._begin(PINGS, self._answer_ping())
            case _:
                raise InvalidFrame(f"unknown message {message[:1]!r}")

    def _begin(self, stream: int, work: Any) -> None:
        self._streams[stream] = task = self._loop.create_task(work, name=f"engine stream {stream}")
        task.add_done_callback(lambda _task: self._streams.pop(stream, None))

    async def _generate(self, stream: int, request: GenerateRequest) -> None:
        """Send the chunks up to the one with `finish`, or an error: the web process waits for one of them."""
        problem: Exception | None = EngineUnavailable("the engine ended the stream without a finish")
        try:
            async with aclosing(self._engine.generate(request)) as chunks:
                async for chunk in chunks:
                    self._send(codec.encode_chunk(stream, chunk))
                    if chunk.finish is not None:
                        problem = None
        except Exception as error:
            problem = error
        finally:
            # Also after a cancellation, which may come from the engine itself. The client ignores the error of an aborted stream.
            if problem is not None:
                self._send_error(stream, problem)

    async def _count(self, stream: int, request: GenerateRequest) -> None:
        try:
            self._send([codec.COUNTED, stream, await self._engine.count_tokens(request.prompt, request.images)])
        except Exception as error:
            self._send_error(stream, error)

    async def _answer_ping(self) -> None:
        """Answer with the health of the engine, whose core may hang. Clients of an earlier version read the kind alone."""
        self._send([codec.PONG, await self._engine.is_healthy()])

    def _send_error(self, stream: int, error: Exception) -> None:
        if not isinstance(error, EngineError):
            logger.error("stream %d has failed", stream, exc_info=error)
            error = EngineUnavailable(f"the engine worker has failed: {error!r}")
        self._send(codec.encode_error(stream, error))

    def _send(self, message: list[Any]) -> None:
        self._outgoing.append(message)
        if not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        """Write all messages as one frame. While the web process does not read, they wait for `resume_writing`."""
        if self._transport is None or self._is_paused:
            return
        self._is_scheduled = False
        if self._outgoing:
            messages, self._outgoing = self._outgoing, []
            try:
                self._transport.write(encode(messages))
            except TypeError:
                # Without these messages, their streams would wait for ever.
                logger.exception("messages to a web process have no JSON representation, its connection is closed")
                self.close()
