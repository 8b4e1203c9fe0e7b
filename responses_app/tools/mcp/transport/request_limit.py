"""Limit on the requests of an MCP server to this client. The client library starts a task for each, whatever their number."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Self, TypeAlias

import anyio
from mcp.client._transport import ReadStream, WriteStream
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCRequest, JSONRPCResponse

MAX_UNANSWERED = 1000
Received: TypeAlias = SessionMessage | Exception


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


class _CountingReader:
    """Stream of received messages that counts each in `limit`."""

    def __init__(self, inner: ReadStream[Received], limit: RequestLimit) -> None:
        self._inner, self._limit = inner, limit

    async def receive(self) -> Received:
        item = await self._inner.receive()
        await self._limit.add_received(item)
        return item

    async def aclose(self) -> None:
        await self._inner.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Received:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._inner.__aexit__(kind, error, trace)


class _CountingWriter:
    """Stream of sent messages that counts each in `limit`."""

    def __init__(self, inner: WriteStream[SessionMessage], limit: RequestLimit) -> None:
        self._inner, self._limit = inner, limit

    async def send(self, item: SessionMessage, /) -> None:
        await self._inner.send(item)
        self._limit.add_sent(item)

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._inner.__aexit__(kind, error, trace)
