"""ASGI extensions between the application and the HTTP server of this project."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol, cast

# The body of an upload as an open file, in place of messages, which would hold the body in memory.
BODY_FILE: Final = "responses.body_file"
# The connection itself as a DirectWriter, in place of a message for every write.
DIRECT_WRITER: Final = "responses.direct_writer"


class DirectWriter(Protocol):
    """Connection of a streamed response or a WebSocket, written without an ASGI message."""

    def can_write_now(self) -> bool:
        """Return True while the response has begun and the client reads; otherwise send a message, which waits for the client."""
        ...

    def write_now(self, parts: Sequence[bytes]) -> None:
        """Write behind all earlier messages: one piece of the body of a response, or a text message for each part."""
        ...


def direct_writer(scope: Mapping[str, Any]) -> DirectWriter | None:
    """Return the DirectWriter of a scope; None under another ASGI server."""
    return cast("DirectWriter | None", (scope.get("extensions") or {}).get(DIRECT_WRITER))
