"""Request admission before the body: what the application tells the transport about a request whose head has come."""

from __future__ import annotations

import resource
from typing import Protocol

# Descriptors that the process needs beside those of its connections.
SPARE_DESCRIPTORS = 512
# A connection, and the temporary file of its body.
DESCRIPTORS_EACH = 2


class Gate(Protocol):
    """The part of the API that knows its addresses and its keys."""

    def is_api(self, path: str) -> bool:
        """Whether this address needs a key and takes a long body."""
        ...

    def cached_account(self, authorization: str) -> str | None:
        """Return the account of a key that was looked up a moment ago; None if it has to be looked up."""
        ...

    async def look_up(self, authorization: str) -> str:
        """Return the account of the key in an `Authorization` header, in bounded time. Raises ApiError."""
        ...


class OpenGate:
    """A gate for an application without keys: all clients have one account."""

    def is_api(self, path: str) -> bool:
        """Every address takes a long body."""
        del path
        return True

    def cached_account(self, authorization: str) -> str | None:
        """Ask nobody."""
        del authorization
        return "anybody"

    async def look_up(self, authorization: str) -> str:
        """Ask nobody."""
        del authorization
        return "anybody"


def affordable_connections(wanted: int) -> int:
    """Return how many connections the limit of open files leaves room for, after raising it as far as it may be raised."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = wanted * DESCRIPTORS_EACH + SPARE_DESCRIPTORS
    if soft != resource.RLIM_INFINITY and soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft == resource.RLIM_INFINITY:
        return wanted
    return max(min(wanted, (soft - SPARE_DESCRIPTORS) // DESCRIPTORS_EACH), 1)
