"""Connection of the event loop for commits of events alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg
from django.conf import settings
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGresult

from responses_app.store.db import ASYNC_COMMIT_SQL
from responses_app.store.log.records import Append
from responses_app.store.log.rows.event_copy import COPY_SQL, MAX_COPY_BYTES, copy_rows
from responses_app.store.log.rows.loop_connection import LOST, LoopConnection


class EventConnection(LoopConnection[Append]):
    """Connection that commits the frames of appends with one COPY."""

    def _prepare(self, link: psycopg.Connection[Any]) -> None:
        if settings.RESPONSES_DURABILITY != "disk":
            link.execute(ASYNC_COMMIT_SQL)

    async def _commit(self, appends: Sequence[Append]) -> None:
        link = self._link
        link.send_query(COPY_SQL)
        link.flush()
        # Formatted while Postgres prepares the COPY.
        rows = copy_rows(appends)
        self._check(await self._results(), ExecStatus.COPY_IN)
        for start in range(0, len(rows), MAX_COPY_BYTES):
            while not link.put_copy_data(rows[start : start + MAX_COPY_BYTES]):
                await self._flush()
        link.put_copy_end()
        self._check(await self._results(), ExecStatus.COMMAND_OK)

    async def _results(self) -> list[PGresult]:
        """Send what is left, and wait for all results of the request, or for the permission to send rows."""
        results = list[PGresult]()
        await self._flush()
        while not results or results[-1].status != ExecStatus.COPY_IN:
            result = await self._next_result()
            if result is None:
                break
            results.append(result)
        return results

    @staticmethod
    def _check(results: Sequence[PGresult], expected: ExecStatus) -> None:
        """Raise the error of the first result that is not `expected`. A lost connection has no results."""
        if not results:
            raise psycopg.OperationalError(LOST)
        for result in results:
            if result.status != expected:
                raise psycopg.errors.error_from_result(result)
