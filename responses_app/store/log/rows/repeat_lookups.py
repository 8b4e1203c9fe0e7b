"""Look-ups of repeated requests on a connection of the event loop: nearly all find nothing, and each request has one."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Sequence
from typing import Final

from asgiref.sync import sync_to_async

from responses_app.store import repeats
from responses_app.store.log.rows.pipeline_connection import PipelineConnection
from responses_app.store.log.rows.transaction_connection import text_array

FIND: Final = b"find_repeats"
STATEMENTS: Final = {FIND: repeats.FIND_SQL}


class LookupConnection(PipelineConnection[str]):
    """Connection that finds the responses of fingerprints: a commit is a query here."""

    statements = STATEMENTS

    def __init__(self) -> None:
        super().__init__()
        self._keys: Sequence[int | None] = ()

    async def find(self, fingerprints: Sequence[str]) -> Sequence[int | None]:
        """Return what `repeats.find` returns. Raises DatabaseError."""
        if await self.commit(fingerprints):
            return self._keys
        return await sync_to_async(repeats.find)(fingerprints)

    async def _commit(self, fingerprints: Sequence[str]) -> None:
        self._sent = []
        self._execute(FIND, [text_array(fingerprints)])
        (self._keys,) = self._row((await self._results())[FIND])


class RepeatLookups:
    """Look-ups of a process, one query at a time for all requests that wait."""

    def __init__(self) -> None:
        self._connection = LookupConnection()
        self._waiting: dict[str, asyncio.Future[int | None]] = {}
        self._task: asyncio.Task[None] | None = None

    async def find(self, fingerprint: str) -> int | None:
        """Return the primary key of the response to which a repeated request belongs, or None. Raises DatabaseError."""
        future = self._waiting.setdefault(fingerprint, asyncio.get_running_loop().create_future())
        if self._task is None or self._task.done():
            # An empty context, so that the task does not inherit the database thread of a request.
            self._task = asyncio.get_running_loop().create_task(self._run(), context=contextvars.Context())
        return await asyncio.shield(future)

    def close(self) -> None:
        """Stop the task and close the connection."""
        if self._task is not None:
            self._task.cancel()
        self._connection.close()

    async def _run(self) -> None:
        while self._waiting:
            waiting, self._waiting = self._waiting, {}
            try:
                keys = await self._connection.find(list(waiting))
            except Exception as error:
                for future in waiting.values():
                    future.set_exception(error)
            else:
                for future, key in zip(waiting.values(), keys, strict=True):
                    future.set_result(key)
