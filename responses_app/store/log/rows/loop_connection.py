"""Connection of the event loop to Postgres through libpq, without a thread.

A change of thread costs several times as much as a commit of a few events, and a busy event loop keeps the thread waiting for the
GIL. All statements beside the commits of the log and the look-ups of repeated requests use Django's connections.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Generic, TypeVar

import psycopg
from asgiref.sync import sync_to_async
from django.db import connection
from psycopg.pq import TransactionStatus
from psycopg.pq.abc import PGconn, PGresult

from responses_app.store.db import check_connection, in_background
from responses_app.utils.watched_connection import SILENCE_S, SILENT, WatchedConnection

CONNECT_TIMEOUT_S = 5
LOST = "the connection is lost"
Entry = TypeVar("Entry")


class LoopConnection(ABC, Generic[Entry]):
    """Connection of an event loop to Postgres, for one commit at a time. Opened by the first commit, and again after a loss."""

    def __init__(self) -> None:
        self._connection: WatchedConnection[Any] | None = None
        # Kept beside the connection, which does not know its socket any more after a loss.
        self._socket = -1
        # Completed when libpq has a result, or when the socket accepts more bytes.
        self._progress: asyncio.Future[None] | None = None
        # Timer, then check of a commit without an answer.
        self._timer: asyncio.TimerHandle | None = None
        self._question: asyncio.Task[None] | None = None

    async def commit(self, batch: Sequence[Entry]) -> bool:
        """Commit `batch`. Raises DatabaseError.

        Return False without a commit if Django's connection is inside of a transaction, to which the rows belong then.
        """
        with connection.wrap_database_errors:
            completed = False
            self._watch()
            try:
                if self._connection is None and not await self._open():
                    return False
                await self._commit(batch)
                completed = True
            finally:
                self._end_watch()
                # After a cancellation the next reply would belong to this commit.
                if not completed and not self._is_idle():
                    self.close()
        return True

    def close(self) -> None:
        """Close the connection, if open."""
        if self._connection is not None:
            asyncio.get_running_loop().remove_reader(self._socket)
            self._connection.close()
            self._connection = None

    @abstractmethod
    async def _commit(self, batch: Sequence[Entry]) -> None:
        """Commit `batch` on the open connection; a refused commit should leave it idle. Raises psycopg.Error, DatabaseError."""

    @abstractmethod
    def _prepare(self, link: psycopg.Connection[Any]) -> None:
        """Prepare a new connection for commits, in a thread."""

    async def _open(self) -> bool:
        self._connection = await sync_to_async(self._connect)()
        if self._connection is None:
            return False
        self._socket = self._connection.fileno()
        asyncio.get_running_loop().add_reader(self._socket, self._on_readable)
        return True

    def _watch(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(SILENCE_S, self._begin_check)

    def _end_watch(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._question is not None:
            self._question.cancel()
        self._timer = self._question = None

    def _begin_check(self) -> None:
        self._question = asyncio.get_running_loop().create_task(self._check_silence())

    async def _check_silence(self) -> None:
        """Fail the commit if it makes no progress because the connection is lost or Postgres is silent, else check again later."""
        if self._connection is not None:
            # In case the event loop has missed an answer, or the end of the connection.
            self._on_readable()
        link, progress = self._connection, self._progress
        if link is None:
            # While a connection is opened, nothing waits for progress.
            self._fail(psycopg.OperationalError(LOST))
        elif await self._is_silent(link) and link is self._connection and progress is self._progress:
            self._fail(psycopg.OperationalError(SILENT))
        self._watch()

    @staticmethod
    async def _is_silent(link: WatchedConnection[Any]) -> bool:
        """Return whether Postgres gives no sign of life on a connection, or the connection is lost."""
        try:
            return await in_background(link.is_silent)
        except psycopg.Error:
            return True

    def _connect(self) -> WatchedConnection[Any] | None:
        """Connect with the parameters of Django's database, outside of the pool. None inside of a transaction."""
        if connection.in_atomic_block:
            return None
        # The fault that has ended this connection has probably ended the connection of this thread too.
        check_connection()
        parameters = {name: value for name, value in connection.get_connection_params().items() if name != "pool"}
        link = WatchedConnection.connect(**{"connect_timeout": CONNECT_TIMEOUT_S} | parameters, autocommit=True)
        self._prepare(link)
        return link

    def _is_idle(self) -> bool:
        link = self._connection
        return link is not None and link.pgconn.transaction_status == TransactionStatus.IDLE

    @property
    def _link(self) -> PGconn:
        """Connection of libpq. Raises OperationalError if the connection is lost."""
        if self._connection is None:
            raise psycopg.OperationalError(LOST)
        return self._connection.pgconn

    async def _next_result(self) -> PGresult | None:
        """Wait for the next result of libpq; None behind the last result of a statement."""
        link = self._link
        while link.is_busy():
            await self._wait()
        return link.get_result()

    async def _flush(self) -> None:
        """Send the buffer of libpq."""
        loop, link = asyncio.get_running_loop(), self._link
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
        link = self._link
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
