"""Connection to an engine worker: the frames of all streams, and the chunks of each stream that wait."""

from __future__ import annotations

import asyncio
import itertools
import logging
from time import monotonic
from typing import Any, cast

from responses_app.engine_interface import Chunk, EngineError, EngineUnreachable, GenerateRequest, RequestRejected
from responses_app.engines.socket import codec
from responses_app.engines.socket.frames import FrameSplitter, InvalidFrame, encode

logger = logging.getLogger(__name__)

CLOSE_S = 5.0


class EngineConnection(asyncio.Protocol):
    """Connection to a worker."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.described: asyncio.Future[dict[str, Any]] = loop.create_future()
        self._closed: asyncio.Future[None] = loop.create_future()
        self._numbers = itertools.count(1)
        self._streams: dict[int, RequestStream] = {}
        self._splitter = FrameSplitter()
        self._received_s = monotonic()
        self._is_engine_healthy = True
        self._answer: asyncio.Future[None] | None = None
        self._transport: asyncio.Transport | None = None

    @property
    def is_open(self) -> bool:
        """True while the worker can be reached."""
        return self._transport is not None and not self._transport.is_closing()

    def begin(self, kind: str, request: GenerateRequest) -> RequestStream:
        """Send a request. Raises RequestRejected for values without a JSON representation."""
        number = next(self._numbers)
        values, body = codec.encode_request(request)
        try:
            frame = encode([[kind, number, values]], body)
        except (TypeError, ValueError) as error:
            raise RequestRejected(f"not representable as JSON: {error}") from error
        if not self._streams:
            self._received_s = monotonic()
        self._streams[number] = stream = RequestStream(self, number)
        self._write(frame)
        return stream

    def end(self, number: int, *, is_finished: bool) -> None:
        """Forget a stream, and abort it in the worker unless it is finished."""
        if self._streams.pop(number, None) is not None and not is_finished:
            self._write(encode([[codec.ABORT, number]]))

    def check(self, watch_s: float, hung_s: float) -> None:
        """Ping a worker that was silent for `watch_s` while streams wait; close the connection after `hung_s`."""
        silent_s = monotonic() - self._received_s
        if not self._streams or silent_s < watch_s:
            return
        if silent_s > hung_s and self._transport is not None:
            logger.error("the engine worker has not answered for %.0f s", silent_s)
            self._transport.abort()
        self._write(encode([[codec.PING]]))

    async def answers(self, fresh_s: float, limit_s: float) -> bool:
        """Return True if data came less than `fresh_s` seconds ago, or comes within `limit_s` seconds after a ping.

        False if the engine was not healthy at the last ping.
        """
        if not self.is_open or monotonic() - self._received_s < fresh_s:
            return self.is_open and self._is_engine_healthy
        if self._answer is None:
            self._answer = asyncio.get_running_loop().create_future()
            self._write(encode([[codec.PING]]))
        done, _ = await asyncio.wait({self._answer}, timeout=limit_s)
        return bool(done) and self.is_open and self._is_engine_healthy

    async def wait_closed(self, limit_s: float) -> None:
        """Wait until the connection is closed, at most `limit_s` seconds."""
        await asyncio.wait({self._closed}, timeout=limit_s)

    async def close(self) -> None:
        """Close the connection; all streams raise EngineUnreachable."""
        if self._transport is not None:
            self._transport.close()
        await self.wait_closed(CLOSE_S)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport."""
        # The transports of uvloop are no subclasses.
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, _error: Exception | None) -> None:
        """End all streams with EngineUnreachable."""
        self._transport = None
        self._end_wait()
        streams, self._streams = self._streams, {}
        for stream in streams.values():
            stream.fail(EngineUnreachable("the connection to the engine worker broke off"))
        if not self.described.done():
            self.described.set_exception(EngineUnreachable("the engine worker closed the connection"))
            self.described.exception()
        self._closed.set_result(None)

    def data_received(self, data: bytes) -> None:
        """Pass the messages of complete frames to their streams. Close the connection after an invalid message."""
        self._received_s = monotonic()
        try:
            for messages, _ in self._splitter.feed(data):
                for message in messages:
                    self._receive(message)
        except (InvalidFrame, LookupError, TypeError, ValueError):
            logger.exception("the engine worker sent no valid message, its connection is closed")
            if self._transport is not None:
                self._transport.abort()
        self._end_wait()

    def _receive(self, message: list[Any]) -> None:
        kind = message[0]
        if kind == codec.PONG:
            # A worker of an earlier version sends no health.
            self._is_engine_healthy = len(message) < 2 or bool(message[1])
            return
        if kind == codec.MODEL:
            self.described.set_result(message[1])
        elif (stream := self._streams.get(message[1])) is None:
            return  # Aborted meanwhile.
        elif kind == codec.CHUNK:
            stream.feed(codec.decode_chunk(message))
        elif kind == codec.ERROR:
            stream.fail(codec.decode_error(message))
        else:
            stream.finish_count(message[2])

    def _end_wait(self) -> None:
        answer, self._answer = self._answer, None
        if answer is not None:
            answer.set_result(None)

    def _write(self, frame: bytes) -> None:
        if self._transport is not None:
            self._transport.write(frame)


class RequestStream:
    """Stream of one request: the chunks that wait, joined to one."""

    def __init__(self, connection: EngineConnection, number: int) -> None:
        self._connection, self._number = connection, number
        self._chunk: Chunk | None = None
        self._count: int | None = None
        self._error: EngineError | None = None
        self._is_finished = False
        self._waiter: asyncio.Future[None] | None = None

    async def chunk(self) -> Chunk:
        """Wait for new tokens. Raises the error of the worker behind the tokens that came before the error."""
        while (chunk := self._chunk) is None:
            await self._wait()
        self._chunk = None
        return chunk

    async def count(self) -> int:
        """Wait for the number of tokens."""
        while self._count is None:
            await self._wait()
        return self._count

    def feed(self, chunk: Chunk) -> None:
        """Add new tokens."""
        self._chunk = chunk if self._chunk is None else codec.join_chunks(self._chunk, chunk)
        self._is_finished = chunk.finish is not None
        self._wake()

    def finish_count(self, count: int) -> None:
        """Set the number of tokens."""
        self._count, self._is_finished = count, True
        self._wake()

    def fail(self, error: EngineError) -> None:
        """End the stream with an error."""
        self._error, self._is_finished = error, True
        self._wake()

    def end(self) -> None:
        """End the stream; abort the request unless it is finished."""
        self._connection.end(self._number, is_finished=self._is_finished)

    async def _wait(self) -> None:
        if self._error is not None:
            raise self._error
        self._waiter = asyncio.get_running_loop().create_future()
        await self._waiter

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
