"""Protocol version of an MCP session: the revision 2026-07-28 without a handshake, or an older revision with `initialize`."""

from __future__ import annotations

import asyncio
import hashlib
import time
from dataclasses import dataclass

from cachetools import TTLCache
from mcp import ClientSession, MCPError
from mcp_types import DiscoverResult

from responses_app.tools.mcp.servers import McpServer

# Time for the answer to `server/discover`. Some servers of older revisions answer unknown methods with nothing.
PROBE_LIMIT_S = 3.0
# Seconds for which the protocol of a server is known, and servers in the memory of a process.
CACHE_S = 300
CACHE_SIZE = 256
# Bytes of an answer to `server/discover` that is remembered.
MAX_DISCOVERED_BYTES = 32 * 1024


@dataclass(frozen=True, slots=True)
class KnownProtocol:
    """Protocol of an earlier session with a server: the older SSE transport or not, and the answer to `server/discover` if any."""

    is_sse: bool
    discovered: DiscoverResult | None


_known: TTLCache[bytes, KnownProtocol] = TTLCache(CACHE_SIZE, CACHE_S, time.monotonic)


def known_protocol(server: McpServer) -> KnownProtocol | None:
    """Return the protocol of an earlier session with `server`; None without one in the last CACHE_S seconds."""
    return _known.get(_key(server))


def forget_protocol(server: McpServer) -> None:
    """Forget the protocol of `server`: the next session finds out again."""
    _known.pop(_key(server), None)


def forget_all() -> None:
    """Forget the protocols of all servers."""
    _known.clear()


async def settle_protocol(session: ClientSession, server: McpServer, *, is_sse: bool) -> None:
    """Settle the protocol version of a new session. Raises MCPError, and the errors of the transport."""
    known = known_protocol(server)
    if known is not None and known.discovered is not None:
        session.adopt(known.discovered)
    elif known is not None or is_sse:
        await session.initialize()
    else:
        await _negotiate(session)
    discovered = session.discover_result
    # Without a limit a client could fill gigabytes with the answers of its own servers.
    if discovered is None or len(discovered.model_dump_json()) <= MAX_DISCOVERED_BYTES:
        _known[_key(server)] = KnownProtocol(is_sse, discovered)


async def _negotiate(session: ClientSession) -> None:
    """Use `server/discover`; with any answer but success, and with no answer, the handshake of the older revisions."""
    has_answered = True
    try:
        async with asyncio.timeout(PROBE_LIMIT_S):
            await session.discover()
        return
    except TimeoutError:
        has_answered = False
    except (MCPError, ValueError, RuntimeError):
        # An error, an answer that is no result of this method, or a result without a common revision.
        pass
    try:
        await session.initialize()
    except MCPError:
        if has_answered:
            raise
        # A slow server without the older handshake.
        await session.discover()


def _key(server: McpServer) -> bytes:
    return hashlib.sha256(server.identity).digest()
