"""Streams of a WebSocket connection, with shared limits and cached contexts."""

from __future__ import annotations

import asyncio

from responses_app.errors import ApiError, InvalidRequest
from responses_app.runs.context_cache import CachedContext
from responses_app.sockets.interfaces import SocketConnection
from responses_app.sockets.stream import QueuedRequest, Stream

# Responses that run at the same time on a connection; further requests wait.
MAX_RUNNING_RESPONSES = 16
# Distinct values of `stream_id` in the life of a connection.
MAX_NAMED_STREAMS = 32
# Requests that wait on a connection, and their bytes.
MAX_QUEUED_REQUESTS = 256
MAX_QUEUED_BYTES = 128 * 1024 * 1024
# Bytes of the cached contexts of a connection.
MAX_CACHED_BYTES = 128 * 1024 * 1024


class StreamRegistry:
    """Streams of a connection by `stream_id`, created on first use."""

    def __init__(self, connection: SocketConnection) -> None:
        self.run_slots = asyncio.Semaphore(MAX_RUNNING_RESPONSES)
        self._connection = connection
        self._streams: dict[str | None, Stream] = {}
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def response_count(self) -> int:
        """Count the ended responses of all streams."""
        return sum(stream.response_count for stream in self._streams.values())

    def get_or_create(self, name: str | None) -> Stream:
        """Return the stream `name`, None for the default. Raise InvalidRequest `websocket_stream_limit_reached`."""
        stream = self._streams.get(name)
        if stream is not None:
            return stream
        if name is not None and len(self._streams.keys() - {None}) >= MAX_NAMED_STREAMS:
            message = (
                f"This connection has used {MAX_NAMED_STREAMS} distinct values of 'stream_id', which is the limit. "
                "Use one of them again, or open a new connection."
            )
            raise InvalidRequest(message, param="stream_id", code="websocket_stream_limit_reached")
        stream = self._streams[name] = Stream(name, self._connection, self)
        return stream

    def get(self, name: str | None) -> Stream | None:
        """Return the stream `name`, or None if unknown. The default stream always exists."""
        return self.get_or_create(None) if name is None else self._streams.get(name)

    def enqueue(self, stream: Stream, queued: QueuedRequest) -> None:
        """Add a request to a stream."""
        self._idle.clear()
        stream.enqueue(queued)

    @property
    def is_full(self) -> bool:
        """Return True if the limit of queued requests or of queued bytes is reached."""
        queued = sum(len(stream.queue) for stream in self._streams.values())
        return queued >= MAX_QUEUED_REQUESTS or self.queued_bytes > MAX_QUEUED_BYTES

    @property
    def queued_bytes(self) -> int:
        """Sum the sizes of all queued requests."""
        return sum(
            queued.size for stream in self._streams.values() for queued in stream.queue if not isinstance(queued, ApiError)
        )

    def by_response(self, uid: str) -> Stream | None:
        """Return the stream with the active or last response `uid`."""
        for stream in self._streams.values():
            is_active = stream.active is not None and stream.active.run.uid == uid
            if is_active or (stream.last is not None and stream.last[0] == uid):
                return stream
        return None

    def cached(self, uid: str | None) -> CachedContext | None:
        """Return the cached context of the response `uid`, from any stream."""
        if uid is None:
            return None
        contexts = (stream.cached for stream in self._streams.values())
        return next((context for context in contexts if context is not None and context.uid == uid), None)

    def evict(self, newest: str | None) -> None:
        """Evict cached contexts over `MAX_CACHED_BYTES` in the order of the streams, the context of the stream `newest` last."""
        others = [stream for name, stream in self._streams.items() if stream.cached is not None and name != newest]
        streams = [*others, self._streams[newest]]
        total = sum(stream.cached.size for stream in streams if stream.cached is not None)
        while streams and total > MAX_CACHED_BYTES:
            stream = streams.pop(0)
            total -= stream.cached.size if stream.cached is not None else 0
            stream.cached = None

    def on_idle(self) -> None:
        """Wake `wait_idle` if all streams are idle."""
        if all(stream.is_idle for stream in self._streams.values()):
            self._idle.set()

    async def wait_idle(self) -> None:
        """Wait until all streams are idle."""
        await self._idle.wait()

    async def close(self) -> None:
        """Close all streams."""
        for stream in self._streams.values():
            await stream.close()
