"""One task that makes events durable: whatever arrives while a commit is under way goes out together in the next one.

A run has one append under way at a time, and shows its events when that is done: an event reaches a listener only after the log holds
it (decision F6), and a run that generates faster than the database commits gets its tokens in larger chunks instead of a queue that
grows. Deltas are committed with `synchronous_commit` off. A crash of a web process loses nothing that was committed; one of Postgres
may take back what was committed in the last moments and seen by clients, so that is remembered and written again. Only the end of the
whole host at that very moment can contradict a client, and never in what it relies on: the commits with which a response begins and
ends wait for the disk.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import time
from collections.abc import Callable, Iterable

from asgiref.sync import sync_to_async
from django.db import DatabaseError, IntegrityError, InterfaceError, OperationalError

from responses_app.store.db import check_connection
from responses_app.store.log.group_commit import lost_appends, was_committed, write
from responses_app.store.log.records import Append, ConversationLocked, Fenced

log = logging.getLogger("responses.recorder")

# What passes: the database is away, ends connections, has too many of them or no room.
AWAY = (OperationalError, InterfaceError)
RETRY_DELAY = 0.2
# How long a commit waits for a database that is away; runs wait with it.
RETRY_LIMIT = 60.0
CLOSE_LIMIT = 10.0
# Postgres writes what was committed to disk within three times 0.2 s (wal_writer_delay), however busy it is.
LATE_S = 2.0
# The more runs have shared a commit, the longer the next one waits for as many: so much for each but the first, and no longer than
# that, counted from when it began. A commit costs what thirty events cost, and its thread takes the loop's time while it runs.
GATHER_S, GATHER_MOST_S = 0.0005, 0.016

Done = Callable[[Exception | None], None]


class LogWriter:
    """Owns the one writing task. Made by the hub, on the loop that it serves."""

    def __init__(self) -> None:
        self._waiting: list[tuple[Append, Done]] = []
        self._wake = asyncio.Event()
        self._closing = False
        # An empty context: the task must not inherit the thread of whichever request happened to start it.
        self._task = asyncio.get_running_loop().create_task(self._run(), context=contextvars.Context())

    def append(self, append: Append, done: Done) -> None:
        """Queue `append`. `done` is called once, on the loop: with None as soon as it is durable, or with what prevented that.

        A callback and not a future: a run that is cancelled while it waits must not take its events back.
        """
        if self._closing:
            done(DatabaseError("the recorder is closed"))
            return
        self._waiting.append((append, done))
        self._wake.set()

    async def close(self) -> None:
        """Write what is queued, then stop."""
        self._closing = True
        self._wake.set()
        await asyncio.wait_for(self._task, CLOSE_LIMIT)

    async def _run(self) -> None:
        while self._waiting or not self._closing:
            await self._wake.wait()
            self._wake.clear()
            batch, self._waiting = self._waiting, []
            if batch:
                began, size = time.monotonic(), len(batch)
                await self._flush(batch)
                # The next one may be far away, and whoever is in this one would be kept until then.
                batch.clear()
                await self._wait_for_batch(began + min((size - 1) * GATHER_S, GATHER_MOST_S))

    async def _wait_for_batch(self, until: float) -> None:
        """Let more come together, unless there was time for that since the last commit began."""
        wait = until - time.monotonic()
        if wait > 0 and not self._closing:
            await asyncio.sleep(wait)

    async def _flush(self, batch: list[tuple[Append, Done]]) -> None:
        error = _refused(batch) or await self._write([append for append, _ in batch])
        if error is not None and len(batch) > 1:
            # One bad append must not take the others of its batch with it.
            for one in batch:
                await self._flush([one])
            return
        if isinstance(error, Fenced):
            error = await self._rewrite_lost(batch[0][0], error)
        now = time.monotonic()
        for append, done in batch:
            if error is None:
                _remember(append, now)
            else:
                append.log.refused = error if isinstance(error, DatabaseError) else Fenced(str(error))
            done(error)

    async def _rewrite_lost(self, append: Append, error: Exception) -> Exception | None:
        """The database has crashed and come back without what it had not on disk: if the log is still ours, it gets that again."""
        try:
            again = await sync_to_async(lost_appends)(append)
        except DatabaseError as more:
            return more
        if not again:
            return error
        log.warning("%s: the database has lost %d commits, they are made again", append.log.row.uid, len(again))
        return await self._write([*again, append])

    async def _write(self, appends: list[Append]) -> Exception | None:
        """Try until the database is back, within the limit. Returns the error that remained."""
        until, again = time.monotonic() + RETRY_LIMIT, False
        while True:
            try:
                await sync_to_async(write)(appends)
            except DatabaseError as error:
                # A second try collides with the first one's rows if only the answer to its commit was lost.
                if (
                    again
                    and isinstance(error, (IntegrityError, Fenced, ConversationLocked))
                    and await sync_to_async(was_committed)(appends)
                ):
                    return None
                # Others on this thread may have opened another connection by now: that there is one says nothing of the one that broke.
                works = await sync_to_async(check_connection)()
                final = isinstance(error, (ConversationLocked, Fenced)) or (works and not isinstance(error, AWAY))
                if final or time.monotonic() > until:
                    (log.info if isinstance(error, Fenced) else log.error)("append refused: %s", error)
                    return error
                log.warning("database lost, retrying: %s", error)
                again = True
                await asyncio.sleep(RETRY_DELAY)
            except Exception as error:
                log.exception("append failed")
                return error
            else:
                return None


def _refused(batch: Iterable[tuple[Append, Done]]) -> Exception | None:
    """Why one of them cannot be written any more: an earlier append to its log was refused.

    A run that does not wait, or is cancelled while it does, hands over the next events all the same. Their numbers would fit
    behind those of whoever has won the refused ones (adr 7), and the log would tell two stories.
    """
    return next((append.log.refused for append, _ in batch if append.log.refused is not None), None)


def _remember(append: Append, now: float) -> None:
    late = append.log.late
    while late and now - late[0][0] > LATE_S:
        late.pop(0)
    late.append((now, append))
