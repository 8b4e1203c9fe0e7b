"""Name resolution with a check of every address."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Sequence
from functools import cache
from typing import TypeAlias

import httpx2

from responses_app.network.addresses import is_public

Resolve: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]


class Unreachable(Exception):
    """The host has no address or an internal address, so no request is sent. The message is for the log only."""


async def resolve(host: str, port: int) -> Sequence[str]:
    """Resolve a host name to numeric addresses. Raises OSError."""
    result = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(entry[4][0]) for entry in result]


async def resolve_checked(host: str, port: int, *, allow_internal: bool, resolve: Resolve = resolve) -> list[str]:
    """Resolve `host` to its addresses, all of which are public unless `allow_internal`. Raises Unreachable and OSError."""
    addresses = list(dict.fromkeys(await resolve(host, port)))
    if not addresses:
        raise Unreachable("its host has no address")
    if not allow_internal and not all(map(is_public, addresses)):
        raise Unreachable(f"its host '{host}' is not on the public internet")
    return addresses


@cache
def default_ssl_context() -> ssl.SSLContext:
    """Create the default SSL context. Cached: creation takes milliseconds."""
    return httpx2.create_ssl_context(trust_env=False)
