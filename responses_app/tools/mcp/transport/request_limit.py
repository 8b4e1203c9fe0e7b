"""Limit on the requests of an MCP server to this client. The client library starts a task for each, whatever their number."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Generic, Self, TypeAlias, TypeVar

import anyio
from mcp.client._transport import ReadStream, WriteStream
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCRequest, JSONRPCResponse

MAX_UNANSWERED = 1000
Received: TypeAlias = SessionMessage | Exception
Stream = TypeVar("Stream", bound="ReadStream[SessionMessage | Exception] | WriteStream[SessionMessage]")


class RequestLimit:
    """Count of the requests of a server without an answer. `on_excess` is called once, and nothing more is read from then on."""

    def __init__(self, on_excess: Callable[[], None]) -> None:
        self._on_excess, self._unanswered = on_excess, 0

    def wrap(
        self, received: ReadStream[Received], sent: WriteStream[SessionMessage]
    ) -> tuple[ReadStream[Received], WriteStream[SessionMessage]]:
        """Return the streams of a transport with the count."""
        return _CountingReader(received, self), _CountingWriter(sent, self)

    async def add_received(self, item: Received) -> None:
        """Count a received message. Beyond the limit, wait until the session is closed."""
        self._unanswered += isinstance(item, SessionMessage) and isinstance(item.message, JSONRPCRequest)
        if self._unanswered > MAX_UNANSWERED:
            self._on_excess()
            await anyio.sleep_forever()

    def add_sent(self, item: SessionMessage) -> None:
        """Count a sent message."""
        self._unanswered -= isinstance(item.message, JSONRPCResponse | JSONRPCError)


class _CountedStream(Generic[Stream]):
    """Stream of a transport whose messages count in `limit`."""

    def __init__(self, inner: Stream, limit: RequestLimit) -> None:
        self._inner, self._limit = inner, limit

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._inner.__aexit__(kind, error, trace)


class _CountingReader(_CountedStream[ReadStream[Received]]):
    """Stream of received messages that counts each."""

    async def receive(self) -> Received:
        item = await self._inner.receive()
        await self._limit.add_received(item)
        return item

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Received:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None


class _CountingWriter(_CountedStream[WriteStream[SessionMessage]]):
    """Stream of sent messages that counts each."""

    async def send(self, item: SessionMessage, /) -> None:
        await self._inner.send(item)
        self._limit.add_sent(item)
