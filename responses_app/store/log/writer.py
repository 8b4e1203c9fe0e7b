"""Log writer: group commit. Appends queued during a commit go together into the next commit.

A run queues a function that returns its append, and the writer calls the function when the commit begins: so the append has
everything that the run has published by then. A run has at most one append in the commit, and shows events to clients only after
the commit.

Commits of deltas use `synchronous_commit` off. A crash of a web process loses no committed event. A crash of Postgres can lose the
commits of the last moments, so these appends are remembered and written again. A crash of the whole host at that time can lose
deltas that clients have received, but never the start or the end of a response: those commits wait for the disk.
"""

from __future__ import annotations

import asyncio
import logging
import time

from asgiref.sync import sync_to_async
from django.db import DatabaseError, IntegrityError, InterfaceError, OperationalError

from responses_app.observability import events
from responses_app.store.content.conversations import ConversationDeleted, ConversationLocked
from responses_app.store.content.history import PreviousDeleted
from responses_app.store.db import check_connection, is_general_error
from responses_app.store.log.commit_queue import Batch, CommitQueue, OnDurable, TakeAppend
from responses_app.store.log.group_commit import lost_appends, map_integrity_errors, was_committed, write
from responses_app.store.log.records import Append, Fenced, Route
from responses_app.store.log.rows.event_connection import EventConnection
from responses_app.store.log.rows.transaction_connection import TransactionConnection
from responses_app.store.storage_report.storage_state import storage_state

log = logging.getLogger("responses.log")

# Errors of a database that restarts, is not reachable, ends connections, or has no connection or disk space left.
TRANSIENT_ERRORS = (OperationalError, InterfaceError)
# Refusals that no repetition changes.
FINAL_ERRORS = (ConversationLocked, ConversationDeleted, PreviousDeleted, Fenced)
RETRY_DELAY_S = 0.2
# A commit is retried for so long; the runs in the commit wait. While the database is away or its disk is full longer, as an operator
# has to act.
MAX_RETRY_S = 60.0
MAX_RETRY_AWAY_S = 900.0
CLOSE_TIMEOUT_S = 10.0
# Postgres writes asynchronous commits to disk within three times wal_writer_delay, by default 0.2 s. Well above that.
RECENT_S = 2.0


class LogWriter:
    """Group commit of appends, in a task for each route on the event loop of the creator.

    Appends with a transaction wait for the disk, which must not delay the deltas of other runs. A run queues an append when its last
    one is committed, so its appends stay in order.
    """

    def __init__(self) -> None:
        self._closing = False
        self._events, self._rows = EventConnection(), TransactionConnection()
        self._queues = {route: CommitQueue(self._flush) for route in Route}

    def enqueue(self, take: TakeAppend, on_durable: OnDurable, route: Route) -> None:
        """Queue the append that `take` returns when the commit begins, unless `take` returns None.

        Calls `on_durable` once, on the event loop and after this call: with None when committed, or with the error. A callback and
        no future: cancelling a waiting run must not withdraw the events.
        """
        if self._closing:
            asyncio.get_running_loop().call_soon(on_durable, DatabaseError("the log writer is closed"))
            return
        self._queues[route].add(take, on_durable)

    async def close(self) -> None:
        """Write the queued appends, then stop the tasks."""
        self._closing = True
        try:
            await asyncio.wait_for(asyncio.gather(*(queue.close() for queue in self._queues.values())), CLOSE_TIMEOUT_S)
        except TimeoutError:
            log.error("events could not be stored within %.0f s: another process continues their responses", CLOSE_TIMEOUT_S)
        finally:
            self._events.close()
            self._rows.close()

    async def _flush(self, batch: Batch) -> None:
        error = _earlier_error(batch) or await self._write([append for append, _ in batch])
        is_away = isinstance(error, TRANSIENT_ERRORS) and is_general_error(error)
        if error is not None and len(batch) > 1 and not is_away:
            # A bad append must not make the rest of the batch fail: write the appends separately.
            for entry in batch:
                await self._flush([entry])
            return
        if isinstance(error, Fenced):
            error = await self._rewrite_lost(batch[0][0], error)
        now = time.monotonic()
        for append, on_durable in batch:
            if error is None:
                _remember(append, now)
            else:
                append.log.error = error if isinstance(error, DatabaseError) else Fenced(str(error))
            on_durable(error)

    async def _rewrite_lost(self, append: Append, error: Exception) -> Exception | None:
        """Write appends lost in a crash of Postgres again, then `append`, if this worker still holds the lease."""
        try:
            lost = await sync_to_async(lost_appends)(append)
        except DatabaseError as more:
            return more
        if not lost:
            return error
        log.warning("%s: the database lost %d commits in a crash, writing them again", append.log.row.uid, len(lost))
        return await self._write([*lost, append])

    async def _commit(self, appends: list[Append]) -> None:
        """Commit once, by the route that all appends can take."""
        routes = {append.route for append in appends}
        link = self._events if routes == {Route.EVENTS} else self._rows
        began = time.monotonic()
        with map_integrity_errors():
            if Route.THREAD in routes or not await link.commit(appends):
                await sync_to_async(write)(appends)
        events.committed(time.monotonic() - began)

    async def _write(self, appends: list[Append]) -> Exception | None:
        """Write with retries for MAX_RETRY_S seconds, or MAX_RETRY_AWAY_S. Return the final error, or None."""
        began, retried = time.monotonic(), False
        while True:
            try:
                await self._commit(appends)
            except DatabaseError as error:
                # If only the reply to the first commit was lost, the retry collides with the rows of the first try.
                if retried and isinstance(error, (IntegrityError, *FINAL_ERRORS)):
                    try:
                        if await sync_to_async(was_committed)(appends):
                            return None
                    except DatabaseError as lost:
                        error = lost
                # Code on the same thread may have opened a new connection, so a working connection does not prove that the error
                # is permanent: the type of the error counts too.
                works = await sync_to_async(check_connection)()
                final = isinstance(error, FINAL_ERRORS) or (works and not isinstance(error, TRANSIENT_ERRORS))
                if not final:
                    storage_state.note_failure(error)
                most_s = MAX_RETRY_AWAY_S if is_general_error(error) else MAX_RETRY_S
                if final or time.monotonic() - began > most_s:
                    level = logging.INFO if isinstance(error, FINAL_ERRORS) else logging.ERROR
                    log.log(level, "append refused to %s: %s", _names(appends), error)
                    return error
                retried = True
                await asyncio.sleep(RETRY_DELAY_S)
            except Exception as error:
                log.exception("append failed")
                return error
            else:
                storage_state.note_success()
                return None


def _earlier_error(batch: Batch) -> Exception | None:
    """Return the error of an earlier append to a log of `batch`, or None.

    A run may queue more events after a refused append. The numbers of these events could follow the events of the worker that has
    taken over the response (ADR 7), so they must be refused too.
    """
    return next((append.log.error for append, _ in batch if append.log.error is not None), None)


def _names(appends: list[Append]) -> str:
    """Return the id of the first response, and the number of the others, which are then tried one by one."""
    others = len(appends) - 1
    return f"{appends[0].log.row.uid} and {others} more" if others else appends[0].log.row.uid


def _remember(append: Append, now: float) -> None:
    recent = append.log.recent
    if append.ending:
        # The end is on the disk, and with it all earlier commits. An entry kept would be a cycle of the log with all its frames, which
        # only a pause of the process for a garbage collection frees.
        recent.clear()
        return
    while recent and now - recent[0][0] > RECENT_S:
        recent.pop(0)
    recent.append((now, append))
