"""SQL of a group commit: insert and start responses, COPY events, end responses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from weakref import WeakSet

import psycopg
from django.conf import settings
from django.db import DatabaseError, IntegrityError, connection, transaction

from responses_app.models import CONVERSATION_DELETED, CONVERSATION_LOCK, PREVIOUS_DELETED, Event, Lease, Response
from responses_app.store.content import tool_outputs
from responses_app.store.content.conversations import ConversationDeleted, ConversationLocked
from responses_app.store.content.history import PreviousDeleted
from responses_app.store.db import ASYNC_COMMIT_SQL, WAIT_FOR_DISK_SQL
from responses_app.store.log.endings import end_logs
from responses_app.store.log.openings import open_logs, start_queued
from responses_app.store.log.records import Append, Fenced
from responses_app.store.log.rows.event_codec import LAST, ROW, unpack_row
from responses_app.store.log.rows.event_copy import copy_events

# The last three are violated when a different worker has taken over the response: by an event number that exists already or leaves a
# gap, and by the end of a response without its lease.
CONSTRAINT_ERRORS: Mapping[str, type[DatabaseError]] = {
    CONVERSATION_LOCK: ConversationLocked,
    CONVERSATION_DELETED: ConversationDeleted,
    PREVIOUS_DELETED: PreviousDeleted,
    "event_number": Fenced,
    "event_contiguous": Fenced,
    "lease_held": Fenced,
}
_async_connections: WeakSet[object] = WeakSet()


def write(appends: Sequence[Append]) -> None:
    """Write `appends` to the database in a single transaction.

    Raises DatabaseError: ConversationLocked if a conversation has a running response or new items, ConversationDeleted if one was
    deleted, PreviousDeleted if the response before was deleted, Fenced if a different worker has taken over.
    """
    with map_integrity_errors():
        connection.ensure_connection()
        _use_async_commit()
        if not any(append.needs_transaction for append in appends):
            # The usual commit has only deltas: a single statement without BEGIN and COMMIT, hence a single round trip.
            copy_events(appends)
            return
        with transaction.atomic(), connection.cursor() as cursor:
            # The start and the end of a response wait for the disk. Lost deltas can be written again (see `lost_appends`).
            if any(append.opens or append.ending or append.wait_for_disk for append in appends):
                cursor.execute(WAIT_FOR_DISK_SQL)
            open_logs([append for append in appends if append.opens])
            start_queued([append.log.row.uid for append in appends if append.starts])
            copy_events(appends)
            for append in appends:
                if append.tool_outputs:
                    tool_outputs.insert(append.log.row, append.tool_outputs)
            end_logs([append for append in appends if append.ending])


def was_committed(appends: Sequence[Append]) -> bool:
    """Return whether `appends` are in the database, after a commit without a reply. Sets the primary keys of the rows."""
    for append in appends:
        frame, row, end = append.frames[-1], append.log.row, append.ending
        # The log of an ended response may be archived already. The time of the end identifies the commit.
        if end is not None and Response.objects.filter(uid=row.uid, status=end.status, ended_at=end.ended_at).exists():
            continue
        rows = Event.objects.filter(response__uid=row.uid, number__lte=frame.number).order_by("-number")
        pk, *stored = rows.values_list("response_id", *ROW).first() or (None,)
        # The number may exist with different data, written by a worker that has taken over the response.
        if pk is None or frame.data not in [one.data for one in unpack_row(*stored) if one.number == frame.number]:
            return False
        row.pk = pk
    return True


def lost_appends(append: Append) -> list[Append]:
    """Find the appends that Postgres lost in a crash, to be written again before `append`.

    Empty if a different worker continues the log, or if the remembered appends do not close the gap.
    """
    log = append.log
    if log.request is None or not Lease.objects.filter(pk=log.row.pk, worker=log.worker, epoch=log.epoch).exists():
        return []
    last = Event.objects.filter(response=log.row.pk).order_by("-number").values_list(LAST, flat=True).first()
    lost = [recent for _, recent in log.recent if last is not None and recent.frames[0].number > last]
    expected = [] if last is None else [last + 1, *(recent.frames[-1].number + 1 for recent in lost)]
    return lost if lost and expected == [recent.frames[0].number for recent in (*lost, append)] else []


@contextmanager
def map_integrity_errors() -> Iterator[None]:
    """Raise the error that belongs to a violated constraint in place of IntegrityError."""
    try:
        yield
    except IntegrityError as error:
        # The name of the constraint: the message of a trigger does not contain it.
        name = error.__cause__.diag.constraint_name if isinstance(error.__cause__, psycopg.Error) else None
        if kind := CONSTRAINT_ERRORS.get(name or ""):
            raise kind(str(error)) from error
        raise


def _use_async_commit() -> None:
    raw = connection.connection
    if raw not in _async_connections and settings.RESPONSES_DURABILITY != "disk":
        with connection.cursor() as cursor:
            cursor.execute(ASYNC_COMMIT_SQL)
        _async_connections.add(raw)
