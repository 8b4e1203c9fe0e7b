"""Socket engine: an engine worker of this machine, driven by token ids over one connection for all streams."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from time import monotonic
from typing import Any, cast

from responses_app.engine_interface import (
    Chunk,
    Constraint,
    EngineError,
    EngineUnavailable,
    EngineUnreachable,
    GenerateRequest,
    RequestRejected,
    Sampling,
    prefill_by_generating,
)
from responses_app.engines.socket import codec
from responses_app.engines.socket.frames import FrameSplitter, InvalidFrame, encode
from responses_app.engines.vllm.token_joiner import TokenJoiner
from responses_app.utils.backoff import Backoff
from responses_app.utils.unix_socket import connectable

logger = logging.getLogger(__name__)

CONNECT_S = 5.0  # Maximum time until the worker has described its model.
# Pauses between attempts to connect again.
PAUSES_S = (0.05, 0.1, 0.25, 0.5)
WATCH_S = 1.0
# A worker that does not answer for so long, while streams wait, counts as dead.
HUNG_S = 15.0


class SocketEngine:
    """The `unix:` engine: the worker of `bin/serve --worker`, at the socket `path`.

    `start` waits up to `start_wait` seconds for the worker. It then continues without the worker if `max_model_len` is given. A worker
    that ends and comes back is used as before. `watch_s` and `hung_s` are the limits of `_Connection.check`.
    """

    counts_cheaply = True
    # The worker is a program of this installation, and compiles with the same xgrammar.
    has_xgrammar = find_spec("xgrammar") is not None
    refusal_s = 0.0

    def __init__(
        self,
        path: str,
        *,
        max_model_len: int | None = None,
        start_wait: float = 0.0,
        watch_s: float = WATCH_S,
        hung_s: float = HUNG_S,
    ) -> None:
        self.path = path
        self._watch_s, self._hung_s = watch_s, hung_s
        self._address = connectable(path)
        self._max_model_len, self._start_wait = max_model_len, start_wait
        self._supports_images = True
        self._connection: _Connection | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._joiner = TokenJoiner()

    @property
    def max_model_len(self) -> int:
        """Maximum number of tokens of prompt and output together. Raises EngineUnavailable before the first connection."""
        if self._max_model_len is None:
            raise EngineUnavailable(f"{self.path} is not connected yet")
        return self._max_model_len

    @property
    def supports_images(self) -> bool:
        """True if the model of the worker accepts images, or is not known yet."""
        return self._supports_images

    async def start(self) -> None:
        """Connect to the worker. Raises EngineUnreachable without a worker."""
        deadline, backoff = monotonic() + self._start_wait, Backoff(PAUSES_S)
        while True:
            try:
                await self.connect()
                break
            except EngineUnreachable as error:
                if monotonic() >= deadline:
                    if self._max_model_len is None:
                        raise
                    logger.warning("started without its engine: %s", error)
                    break
            await asyncio.sleep(backoff.next_pause_s())
        self._keeper = asyncio.create_task(self._keep(), name="engine connection")

    async def close(self) -> None:
        """Close the connection, which aborts all requests."""
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            keeper.cancel()
            with suppress(asyncio.CancelledError):
                await keeper
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    async def is_healthy(self) -> bool:
        """Return True while the worker is connected."""
        return self._connection is not None and self._connection.is_open

    async def count_tokens(self, prompt: Sequence[int], images: Sequence[bytes]) -> int:
        """Count the prompt tokens in the worker, images expanded as in a generation."""
        if not images:
            return len(prompt)
        stream = self._open_connection().begin(codec.COUNT, GenerateRequest("count", prompt, Sampling(1), images=images))
        try:
            return await stream.count()
        finally:
            stream.end()

    async def prefill(self, request: GenerateRequest) -> None:
        """Prefill by a generation of a single token."""
        await prefill_by_generating(self, request)

    def check_constraint(self, constraint: Constraint) -> None:
        """Accept every constraint; the worker rejects invalid constraints before the first chunk."""

    async def generate(self, request: GenerateRequest) -> AsyncGenerator[Chunk, None]:
        """Generate chunks, see `Engine.generate`. The worker compiles new constraints of all web processes in turn."""
        stream = self._open_connection().begin(codec.GENERATE, request)
        try:
            while True:
                chunk = await stream.chunk()
                yield chunk
                if chunk.finish is not None:
                    return
                if request.may_join:
                    await self._joiner.wait()
        finally:
            stream.end()

    def _open_connection(self) -> _Connection:
        if self._connection is None or not self._connection.is_open:
            raise EngineUnreachable(f"the engine worker at {self.path} is not connected")
        return self._connection

    async def connect(self) -> None:
        """Connect, and read the facts of the model. Raises EngineUnreachable."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(CONNECT_S):
                _, connection = await loop.create_unix_connection(_Connection, self._address)
                facts = await connection.described
        except (OSError, TimeoutError, EngineError) as error:
            raise EngineUnreachable(f"no engine worker answers at {self.path} ({type(error).__name__})") from error
        self._max_model_len = int(facts["max_model_len"])
        self._supports_images = bool(facts["supports_images"])
        self._connection = connection

    async def _keep(self) -> None:
        """Connect again after the end of a connection, and end connections to a worker that hangs."""
        backoff = Backoff(PAUSES_S)
        while True:
            if self._connection is not None and self._connection.is_open:
                backoff.reset()
                await self._connection.wait_closed(self._watch_s)
                self._connection.check(self._watch_s, self._hung_s)
                continue
            try:
                await self.connect()
            except EngineUnreachable:
                await asyncio.sleep(backoff.next_pause_s())


async def answers(path: Path, limit_s: float) -> bool:
    """Return True if a worker accepts a connection and describes its model within `limit_s` seconds."""
    engine = SocketEngine(str(path))
    try:
        async with asyncio.timeout(limit_s):
            await engine.connect()
    except (EngineUnavailable, TimeoutError):
        return False
    finally:
        await engine.close()
    return True


class _Connection(asyncio.Protocol):
    """Connection to a worker."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.described: asyncio.Future[dict[str, Any]] = loop.create_future()
        self._closed: asyncio.Future[None] = loop.create_future()
        self._numbers = itertools.count(1)
        self._streams: dict[int, _Stream] = {}
        self._splitter = FrameSplitter()
        self._received_s = monotonic()
        self._transport: asyncio.Transport | None = None

    @property
    def is_open(self) -> bool:
        """True while the worker can be reached."""
        return self._transport is not None and not self._transport.is_closing()

    def begin(self, kind: str, request: GenerateRequest) -> _Stream:
        """Send a request. Raises RequestRejected for values without a JSON representation."""
        number = next(self._numbers)
        values, body = codec.encode_request(request)
        try:
            frame = encode([[kind, number, values]], body)
        except (TypeError, ValueError) as error:
            raise RequestRejected(f"not representable as JSON: {error}") from error
        if not self._streams:
            self._received_s = monotonic()
        self._streams[number] = stream = _Stream(self, number)
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

    async def wait_closed(self, limit_s: float) -> None:
        """Wait until the connection is closed, at most `limit_s` seconds."""
        await asyncio.wait({self._closed}, timeout=limit_s)

    async def close(self) -> None:
        """Close the connection; all streams raise EngineUnreachable."""
        if self._transport is not None:
            self._transport.close()
        await self.wait_closed(CONNECT_S)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # The transports of uvloop are no subclasses.
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, _error: Exception | None) -> None:
        self._transport = None
        streams, self._streams = self._streams, {}
        for stream in streams.values():
            stream.fail(EngineUnreachable("the connection to the engine worker broke off"))
        if not self.described.done():
            self.described.set_exception(EngineUnreachable("the engine worker closed the connection"))
            self.described.exception()
        self._closed.set_result(None)

    def data_received(self, data: bytes) -> None:
        self._received_s = monotonic()
        try:
            for messages, _ in self._splitter.feed(data):
                for message in messages:
                    self._receive(message)
        except (InvalidFrame, LookupError, TypeError, ValueError):
            logger.exception("the engine worker sent no valid message, its connection is closed")
            if self._transport is not None:
                self._transport.abort()

    def _receive(self, message: list[Any]) -> None:
        kind = message[0]
        if kind == codec.PONG:
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

    def _write(self, frame: bytes) -> None:
        if self._transport is not None:
            self._transport.write(frame)


class _Stream:
    """Stream of one request: the chunks that wait, joined to one."""

    def __init__(self, connection: _Connection, number: int) -> None:
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
