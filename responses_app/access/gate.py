"""Check of the API key before the body of a request is read."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from django.db import InterfaceError, OperationalError

from responses_app.access import api_keys, refusals
from responses_app.access.cors import CorsPolicy
from responses_app.access.trusted_proxies import TrustedProxies
from responses_app.errors import ApiError, DatabaseAway, Unauthorized
from responses_app.models import ApiKey

# Paths that need a key.
KEYED: Final = ("/v1", "/openresponses/v1")
# Paths of the MCP server of the log.
LOG_PATHS: Final = frozenset({"/mcp", "/mcp/"})
LOOK_UP_LIMIT_S: Final = 5.0
# Paths whose POST uploads a file.
UPLOADS: Final = re.compile(r"/(?:openresponses/)?v1/(?:files|containers/[^/]+/files)/?")


class KeyGate:
    """Key checks for the transport. `threads` runs look-ups in the database threads of the API."""

    def __init__(
        self,
        threads: Callable[[Callable[[], Awaitable[ApiKey]]], Awaitable[ApiKey]],
        cors: CorsPolicy,
        proxies: TrustedProxies,
    ) -> None:
        self._threads, self._cors, self._proxies = threads, cors, proxies

    def is_api(self, path: str) -> bool:
        """Return True if `path` needs a key and accepts long bodies."""
        return path.startswith(KEYED) or path in LOG_PATHS

    def is_upload(self, method: str, path: str) -> bool:
        """Return True for an upload of a file, whose body has a separate limit."""
        return method == "POST" and UPLOADS.fullmatch(path) is not None

    def cors_headers(self, path: str, origin: str) -> list[tuple[bytes, bytes]]:
        """Return the CORS headers of a refusal."""
        return self._cors.headers(path, origin)

    def client_address(self, peer: str, forwarded_for: Sequence[bytes]) -> str:
        """Return the address of a client behind RESPONSES_TRUSTED_PROXIES."""
        return self._proxies.client_address(peer, forwarded_for)

    def cached_account(self, authorization: str) -> str | None:
        """Return the account of a cached key; None if a look-up is necessary or the header has no key."""
        try:
            key = api_keys.cached_key(authorization)
        except Unauthorized:
            return None
        return api_keys.account(key) if key is not None else None

    def note_refusal(self, refusal: ApiError, request_id: str, line: tuple[str, str], authorization: str, address: str) -> None:
        """Note a request that was refused before the application; `line` is the method and the path."""
        if self.is_api(line[1]):
            refusals.note_refusal(refusal, request_id, line, authorization, address)

    async def look_up(self, authorization: str) -> str:
        """Return the account of the key in an `Authorization` header. Raises Unauthorized, ServiceUnavailable."""
        # A header without a key is rejected even without a database.
        api_keys.cached_key(authorization)
        look_up = asyncio.ensure_future(self._threads(lambda: api_keys.authenticate_header(authorization)))
        # A thread cannot be cancelled: it waits for the database, and nobody waits for its error then.
        look_up.add_done_callback(lambda done: done.cancelled() or done.exception())
        await asyncio.wait({look_up}, timeout=LOOK_UP_LIMIT_S)
        if not look_up.done():
            raise DatabaseAway
        try:
            return api_keys.account(look_up.result())
        except (OperationalError, InterfaceError) as error:
            raise DatabaseAway from error
