"""Interfaces of a stream to the WebSocket connection and to the other streams."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol

from responses_app.errors import ApiError
from responses_app.models import ApiKey
from responses_app.observability.records import ObservedRequest
from responses_app.runs.context_cache import CachedContext


class SocketConnection(Protocol):
    """Interface of a WebSocket connection to the streams."""

    open_responses: bool
    # The id of the request that opened the connection.
    request_id: str

    def observed_request(self) -> ObservedRequest:
        """Return a record of a request on the connection, for the observers."""
        ...

    async def authenticate(self) -> ApiKey:
        """Authenticate the connection again. Raise ApiError if the key is revoked or no more responses may start."""
        ...

    async def send(self, text: str) -> None:
        """Send a text frame, with backpressure."""
        ...

    async def send_events(self, events: Sequence[bytes]) -> None:
        """Send a text frame for each event, with backpressure."""
        ...

    def push_events(self, events: Sequence[bytes]) -> bool:
        """Send a text frame for each event at once, or return False if the client is behind."""
        ...

    async def close_interrupted(self) -> None:
        """Close the connection because a response continues in a different process. The close is the only signal to the client."""
        ...

    def map_error(self, error: Exception) -> ApiError:
        """Map an exception to the ApiError for the client, and log the error."""
        ...


class StreamPeers(Protocol):
    """Interface of the stream registry to a stream."""

    # Limits the running responses of the connection.
    run_slots: asyncio.Semaphore

    def cached(self, uid: str | None) -> CachedContext | None:
        """Return the cached context of the response `uid`, from any stream."""

    def evict(self, newest: str | None) -> None:
        """Evict cached contexts over the size limit, the context of the stream `newest` last."""

    def on_idle(self) -> None:
        """Handle an idle stream."""
