"""The gate of the API: a request with a body needs a key that is known before its body is read."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from django.db import InterfaceError, OperationalError

from responses_app.access import api_keys
from responses_app.errors import ServiceUnavailable, Unauthorized
from responses_app.models import ApiKey

# Where a key is needed.
KEYED: Final = ("/v1", "/openresponses/v1")
LOOK_UP_LIMIT_S: Final = 5.0


class KeyGate:
    """What the transport asks about keys. `threads` runs a look-up where the queries of the API run."""

    def __init__(self, threads: Callable[[Callable[[], Awaitable[ApiKey]]], Awaitable[ApiKey]]) -> None:
        self._threads = threads

    def is_api(self, path: str) -> bool:
        """Whether this address needs a key and takes a long body."""
        return path.startswith(KEYED)

    def remembered(self, authorization: str) -> str | None:
        """Return the account of a key that was looked up a moment ago; None if it has to be looked up, or cannot be known."""
        try:
            key = api_keys.remembered(authorization)
        except Unauthorized:
            return None
        return api_keys.account(key) if key is not None else None

    async def look_up(self, authorization: str) -> str:
        """Return the account of the key in an `Authorization` header. Raises Unauthorized, Unavailable."""
        # A header without a key is refused also while the database is away.
        api_keys.remembered(authorization)
        try:
            async with asyncio.timeout(LOOK_UP_LIMIT_S):
                return api_keys.account(await self._threads(lambda: api_keys.authenticate_header(authorization)))
        except (TimeoutError, OperationalError, InterfaceError) as error:
            raise ServiceUnavailable("The database does not answer. Try again in a moment.") from error
