"""Outages of the database: calls outside of a request, which wait until the database answers again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from asgiref.sync import sync_to_async

from responses_app.store.db import check_connection, is_general_error
from responses_app.store.log.writer import MAX_RETRY_AWAY_S, RETRY_DELAY_S, TRANSIENT_ERRORS

T = TypeVar("T")


async def repeat_while_away(call: Callable[[], Awaitable[T]]) -> T:
    """Return the result of `call()`, which is repeated while the database is away, for as long as an append to a log.

    A commit may have happened although its answer was lost, so a repetition must change nothing then. Raises Error.
    """
    began = time.monotonic()
    while True:
        try:
            return await call()
        except TRANSIENT_ERRORS as error:
            if not is_general_error(error) or time.monotonic() - began > MAX_RETRY_AWAY_S:
                raise
        # Nothing else replaces the broken connection of the thread: no request begins or ends.
        await sync_to_async(check_connection)()
        await asyncio.sleep(RETRY_DELAY_S)
