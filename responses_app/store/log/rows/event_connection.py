"""Connection of the event loop: commits of events through libpq, without a thread.

A change of thread costs several times as much as a commit of a few events, and a busy event loop keeps the thread waiting for the
GIL. All other statements use Django's connections.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import psycopg
from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import connection
from psycopg.pq import ExecStatus, TransactionStatus
from psycopg.pq.abc import PGresult

from responses_app.store.db import check_connection
from responses_app.store.log.group_commit import ASYNC_COMMIT_SQL
from responses_app.store.log.records import Append
from responses_app.store.log.rows.event_copy import COPY_SQL, MAX_COPY_BYTES, copy_rows

CONNECT_TIMEOUT_S = 5


class EventConnection:
    """Connection of an event loop to Postgres, for one commit at a time. Opened by the first commit, and again after a loss."""

    def __init__(self) -> None:
        self._connection: psycopg.Connection[Any] | None = None
        # Kept beside the connection, which does not know its socket any more after a loss.
        self._socket = -1
        # Completed when libpq has a result, or when the socket accepts more bytes.
        self._progress: asyncio.Future[None] | None = None

    async def copy(self, appends: Sequence[Append]) -> bool:
        """Commit the frames of `appends` with one COPY. Raises DatabaseError.

        Return False without a commit if Django's connection is inside of a transaction, to which the events belong then.
        """
        with connection.wrap_database_errors:
            if self._connection is None and not await self._open():
                return False
            completed = False
            try:
                await self._copy(appends)
                completed = True
            finally:
                # A refused COPY leaves the connection idle. After a cancellation the next reply would belong to this COPY.
                if not completed and not self._is_idle():
                    self.close()
        return True

    def close(self) -> None:
        """Close the connection, if open."""
        if self._connection is not None:
            asyncio.get_running_loop().remove_reader(self._socket)
            self._connection.close()
            self._connection = None

    async def _open(self) -> bool:
        self._connection = await sync_to_async(_connect)()
        if self._connection is None:
            return False
        self._socket = self._connection.fileno()
        asyncio.get_running_loop().add_reader(self._socket, self._on_readable)
        return True

    def _is_idle(self) -> bool:
        link = self._connection
        return link is not None and link.pgconn.transaction_status == TransactionStatus.IDLE

    async def _copy(self, appends: Sequence[Append]) -> None:
        assert self._connection is not None  # noqa: S101 - opened by the caller
        link = self._connection.pgconn
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
        assert self._connection is not None  # noqa: S101 - opened by the caller
        link, results = self._connection.pgconn, list[PGresult]()
        await self._flush()
        while not results or results[-1].status != ExecStatus.COPY_IN:
            while link.is_busy():
                await self._wait()
            result = link.get_result()
            if result is None:
                break
            results.append(result)
        return results

    async def _flush(self) -> None:
        """Send the buffer of libpq."""
        assert self._connection is not None  # noqa: S101 - opened by the caller
        loop, link = asyncio.get_running_loop(), self._connection.pgconn
        while link.flush():
            loop.add_writer(self._socket, self._continue)
            try:
                await self._wait()
            finally:
                loop.remove_writer(self._socket)

    async def _wait(self) -> None:
        self._progress = asyncio.get_running_loop().create_future()
        await self._progress

    def _on_readable(self) -> None:
        """Read what Postgres has sent, also between commits, when it ends connections."""
        assert self._connection is not None  # noqa: S101 - removed from the loop when closed
        link = self._connection.pgconn
        try:
            link.consume_input()
        except psycopg.OperationalError as error:
            self._fail(error)
        else:
            if not link.is_busy():
                self._continue()

    def _continue(self) -> None:
        if self._progress is not None and not self._progress.done():
            self._progress.set_result(None)

    def _fail(self, error: psycopg.OperationalError) -> None:
        """Pass the loss of the connection to the commit; without a commit, the next one connects again."""
        if self._progress is not None and not self._progress.done():
            self._progress.set_exception(error)
        self.close()

    @staticmethod
    def _check(results: Sequence[PGresult], expected: ExecStatus) -> None:
        """Raise the error of the first result that is not `expected`."""
        for result in results:
            if result.status != expected:
                raise psycopg.errors.error_from_result(result)


def _connect() -> psycopg.Connection[Any] | None:
    """Connect with the parameters of Django's database, outside of the pool. None inside of a transaction."""
    if connection.in_atomic_block:
        return None
    # The fault that has ended this connection has probably ended the connection of this thread too.
    check_connection()
    parameters = {name: value for name, value in connection.get_connection_params().items() if name != "pool"}
    link = psycopg.connect(**{"connect_timeout": CONNECT_TIMEOUT_S} | parameters, autocommit=True)
    if settings.RESPONSES_DURABILITY != "disk":
        link.execute(ASYNC_COMMIT_SQL)
    return link
