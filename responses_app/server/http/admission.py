"""Admission of a request before the body is read."""

from __future__ import annotations

import resource
from collections.abc import Sequence
from typing import Protocol

from responses_app.errors import ApiError

# Descriptors that the process needs besides those of connections.
SPARE_DESCRIPTORS = 512
# Descriptors of a connection: the socket, and the temporary file of the body.
DESCRIPTORS_EACH = 2


class Gate(Protocol):
    """Interface to the API's paths and keys."""

    def is_api(self, path: str) -> bool:
        """Return True if `path` needs a key and accepts long bodies."""
        ...

    def is_upload(self, method: str, path: str) -> bool:
        """Return True for an upload of a file, whose body has a separate limit."""
        ...

    def cors_headers(self, path: str, origin: str) -> list[tuple[bytes, bytes]]:
        """Return the CORS headers of a refusal, for a request of a page of `origin`."""
        ...

    def client_address(self, peer: str, forwarded_for: Sequence[bytes]) -> str:
        """Return the address of a client behind trusted proxies; `forwarded_for` has the values of `X-Forwarded-For`."""
        ...

    def cached_account(self, authorization: str) -> str | None:
        """Return the account of a cached key; None if a look-up is necessary."""
        ...

    def note_refusal(self, refusal: ApiError, request_id: str, line: tuple[str, str], authorization: str, address: str) -> None:
        """Note a request that was refused before the application; `line` is the method and the path. Reads and writes nothing."""
        ...

    async def look_up(self, authorization: str) -> str:
        """Return the account of the key in an `Authorization` header, in bounded time. Raises ApiError."""
        ...


def affordable_connections(requested_connections: int) -> int:
    """Return the number of connections that the limit of open files allows, after raising that limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = requested_connections * DESCRIPTORS_EACH + SPARE_DESCRIPTORS
    if soft != resource.RLIM_INFINITY and soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft == resource.RLIM_INFINITY:
        return requested_connections
    return max(min(requested_connections, (soft - SPARE_DESCRIPTORS) // DESCRIPTORS_EACH), 1)
