"""The SQL of one group commit: rows that open and start, events by COPY, and endings."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from weakref import WeakSet

import orjson
import psycopg
from django.conf import settings
from django.db import IntegrityError, connection, transaction
from django.db.backends.utils import CursorWrapper
from django.db.models import Max
from psycopg.abc import PQGen
from psycopg.generators import copy_end, copy_to, execute
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGconn

from responses_app.models import (
    CONVERSATION_LOCK,
    Conversation,
    ConversationItem,
    Direction,
    Event,
    Item,
    Lease,
    Response,
    Status,
    StoredRequest,
)
from responses_app.store.content import images
from responses_app.store.content.tool_names import tool_names
from responses_app.store.db import STRICT
from responses_app.store.log.records import Append, ConversationLocked, Fenced, RequestRecord, ResponseLog

COPY = b"COPY responses_app_event (response_id, number, type, data, ms, tokens) FROM STDIN"
# One statement for all that end in a flush, and one parameter: what Django makes of `bulk_update` for nine columns, a CASE for each
# of every row, took a millisecond a response.
ENDED = """UPDATE responses_app_response SET status = told.status, ended_at = told.ended_at, error_code = told.error_code,
  input_tokens = told.input_tokens, cached_tokens = told.cached_tokens, output_tokens = told.output_tokens,
  reasoning_tokens = told.reasoning_tokens, time_to_first_token_ms = told.time_to_first_token_ms, tools = told.tools
FROM json_to_recordset(%s) AS told(id bigint, status text, ended_at timestamptz, error_code text, input_tokens integer,
  cached_tokens integer, output_tokens integer, reasoning_tokens integer, time_to_first_token_ms integer, tools text[])
WHERE responses_app_response.id = told.id
"""
GIVEN_BACK = "DELETE FROM responses_app_lease WHERE (response_id, epoch) IN (SELECT * FROM unnest(%s::bigint[], %s::integer[]))"
# libpq is handed no more at a time: of a buffer that it has no room for it may never take any.
PIECE = 64 * 1024
# What a row says that comes too late, or where there is nothing to follow on: the log has gone on without its writer.
CONSTRAINTS = ("event_number", "event_contiguous")
# What a connection does from its first flush on, unless every commit is to wait for the disk, and what the commits do instead
# with which a response begins and ends.
LAZY = "SET synchronous_commit TO off"
_lazy: WeakSet[object] = WeakSet()


def write(appends: Sequence[Append]) -> None:
    """Make all of `appends` durable, at once or not at all.

    Raises DatabaseError: Locked for one whose conversation is taken, Fenced for one whose response is another's by now.
    """
    with _map_fencing():
        connection.ensure_connection()
        _use_async_commit()
        if not any(append.opens or append.starts or append.ending or append.strict for append in appends):
            # One statement is a transaction of its own: the usual flush, of deltas only, is one exchange with the server.
            _copy(appends)
            return
        with transaction.atomic(), connection.cursor() as cursor:
            # What was accepted is never forgotten, nor is what has ended; deltas can be written once more (see `lost`).
            if any(append.opens or append.ending or append.strict for append in appends):
                cursor.execute(STRICT)
            _open([append for append in appends if append.opens])
            _start([append.log.row.pk for append in appends if append.starts])
            _copy(appends)
            _end(cursor, [append for append in appends if append.ending])


def was_committed(appends: Sequence[Append]) -> bool:
    """Whether a commit whose answer was lost on the way had gone through after all; rows get their keys back."""
    for append in appends:
        frame, row, end = append.frames[-1], append.log.row, append.ending
        # What has ended may be sealed by now; the moment of its end is like no other's.
        if end is not None and Response.objects.filter(uid=row.uid, status=end.status, ended_at=end.ended_at).exists():
            continue
        last = Event.objects.filter(response__uid=row.uid, number=frame.number)
        found = last.values_list("response_id", "data").first()
        # The number may be there with another's words: those of whoever took the response over meanwhile.
        if found is None or found[1] != frame.data.decode():
            return False
        row.pk = found[0]
    return True


def lost_appends(append: Append) -> list[Append]:
    """What Postgres has forgotten of a log when it crashed, and what has to be written again before `append`; it has what is older.

    Nothing, if that is not what has happened: somebody else goes on with the log, or it is not in one piece.
    """
    log = append.log
    if log.asked is None or not Lease.objects.filter(pk=log.row.pk, worker=log.worker, epoch=log.epoch).exists():
        return []
    last = Event.objects.filter(response=log.row.pk).aggregate(last=Max("number"))["last"]
    again = [one for _, one in log.late if last is not None and one.frames[0].number > last]
    due = [] if last is None else [last + 1, *(one.frames[-1].number + 1 for one in again)]
    return again if again and due == [one.frames[0].number for one in (*again, append)] else []


@contextmanager
def _map_fencing() -> Iterator[None]:
    try:
        yield
    except IntegrityError as error:
        # By its name, which the message of a trigger does not repeat.
        if isinstance(error.__cause__, psycopg.Error) and error.__cause__.diag.constraint_name in CONSTRAINTS:
            raise Fenced(str(error)) from error
        raise


def _use_async_commit() -> None:
    raw = connection.connection
    if raw not in _lazy and settings.RESPONSES_DURABILITY != "disk":
        with connection.cursor() as cursor:
            cursor.execute(LAZY)
        _lazy.add(raw)


def _open(appends: Sequence[Append]) -> None:
    if not appends:
        return
    for append in appends:
        # A retry after a lost connection must not keep the key of a row that was rolled back.
        append.log.row.pk = None
    try:
        Response.objects.bulk_create([append.log.row for append in appends])
    except IntegrityError as error:
        if CONVERSATION_LOCK in str(error):
            raise ConversationLocked(str(error)) from error
        raise
    _insert_leases(append.log for append in appends)
    rows = [(append, _items(append.log.row, append.log.input, Direction.INPUT)) for append in appends]
    Item.objects.bulk_create([item for _, items in rows for item in items])
    for append, items in rows:
        append.log.asked_keys = [item.pk for item in items]
        if append.log.images:
            images.insert(items, append.log.images)


def _insert_leases(logs: Iterable[ResponseLog]) -> None:
    """What was asked is kept, and who runs it."""
    asked = [(log, log.asked) for log in logs if log.asked is not None]
    StoredRequest.objects.bulk_create(
        StoredRequest(response=log.row, create_request=told.create_request, prompt_tokens=packed(told.prompt_tokens))
        for log, told in asked
    )
    Lease.objects.bulk_create([_lease(log, told) for log, told in asked])


def _lease(log: ResponseLog, asked: RequestRecord) -> Lease:
    waiting = log.worker is None
    return Lease(response=log.row, worker=log.worker, model=asked.model, waiting=waiting, priority=asked.priority)


def packed(tokens: Sequence[int]) -> bytes:
    """Token ids as they are kept: four bytes each, little-endian."""
    return struct.pack(f"<{len(tokens)}I", *tokens)


def unpacked(data: bytes) -> list[int]:
    """What `packed` made bytes of."""
    return list(struct.unpack(f"<{len(data) // 4}I", data))


def _start(keys: Sequence[int]) -> None:
    if keys:
        Response.objects.filter(pk__in=keys).update(status=Status.IN_PROGRESS)
        Lease.objects.filter(pk__in=keys).update(waiting=False)


def _copy(appends: Sequence[Append]) -> None:
    # The rows are written by hand: a driver that adapts every value takes longer than the database. So does a cursor, for which
    # the same statement is new each time. What goes past Django's cursor has its errors turned into Django's here. It goes past
    # psycopg's BEGIN too: in a transaction there was a statement before it, which has said that.
    rows, raw = b"".join([row for append in appends for row in _rows(append)]), connection.connection
    with connection.wrap_database_errors:
        raw.wait(_copied(raw.pgconn, rows))


def _copied(link: PGconn, rows: bytes) -> PQGen[None]:
    link.send_query(COPY)
    (begun,) = yield from execute(link)
    if begun.status != ExecStatus.COPY_IN:
        raise psycopg.errors.error_from_result(begun)
    for at in range(0, len(rows), PIECE):
        yield from copy_to(link, rows[at : at + PIECE], flush=False)
    yield from copy_end(link, None)


def _rows(append: Append) -> Iterator[bytes]:
    """The frames in COPY's text format. JSON has no tab or line break that is not escaped, only backslashes to double."""
    pk, last = append.log.row.pk, len(append.frames) - 1
    for place, frame in enumerate(append.frames):
        heard = append.heard if place == last else None
        tokens = b"\\N" if heard is None else b"\\\\x" + heard.hex().encode()
        data = frame.data.replace(b"\\", b"\\\\")
        yield b"%d\t%d\t%b\t%b\t%d\t%b\n" % (pk, frame.number, frame.type.encode(), data, frame.ms, tokens)


def _end(cursor: CursorWrapper, appends: Sequence[Append]) -> None:
    if not appends:
        return
    _give_back(cursor, [append.log for append in appends if append.log.asked is not None])
    said: list[tuple[ResponseLog, list[Item]]] = []
    for append in appends:
        row, ending = append.log.row, append.ending
        assert ending is not None  # noqa: S101 - chosen by the caller
        row.status, row.ended_at, row.error_code = ending.status, ending.ended_at, ending.error_code
        _count(row, ending.usage)
        row.tools = tool_names(ending.items)
        said.append((append.log, _items(row, ending.items, Direction.OUTPUT)))
    Item.objects.bulk_create([item for _, items in said for item in items])
    for log, items in said:
        log.said_keys = [item.pk for item in items]
    ends = [{field: getattr(append.log.row, field) for field in ENDING_FIELDS} for append in appends]
    cursor.execute(ENDED, [orjson.dumps(ends).decode()])
    _add_to_conversation([append.log.row for append in appends])


def _give_back(cursor: CursorWrapper, logs: Sequence[ResponseLog]) -> None:
    """The leases go. Raises Fenced if one is another's by now: only the holder ends a response."""
    if not logs:
        return
    cursor.execute(GIVEN_BACK, [[log.row.pk for log in logs], [log.epoch for log in logs]])
    gone = cursor.rowcount
    if gone != len(logs):
        raise Fenced(f"{len(logs) - gone} of {len(logs)} leases are another's")


def _add_to_conversation(rows: Sequence[Response]) -> None:
    """What was asked and what was answered goes into the conversation, in one piece; a response that failed leaves none (checklist 146)."""
    rows = [row for row in rows if row.conversation_id is not None and row.status in ENTERING]
    if not rows:
        return
    # One that was deleted meanwhile takes nothing more.
    wanted = Conversation.objects.select_for_update().filter(pk__in=[row.conversation_id for row in rows])
    places = {row.pk: row.conversation_id for row in rows if row.conversation_id in set(wanted.values_list("pk", flat=True))}
    items = Item.objects.filter(response_id__in=places).order_by("pk").values_list("pk", "uid", "response_id")
    entries = [ConversationItem(conversation_id=places[of], item_id=pk, uid=uid) for pk, uid, of in items if of is not None]
    # An item that the client sent with the id of one that is there already stays where it is.
    ConversationItem.objects.bulk_create(entries, ignore_conflicts=True)


ENTERING = (Status.COMPLETED, Status.INCOMPLETE)
ENDING_FIELDS = (
    "id",
    "status",
    "ended_at",
    "error_code",
    "input_tokens",
    "cached_tokens",
    "output_tokens",
    "reasoning_tokens",
    "time_to_first_token_ms",
    "tools",
)


def _count(row: Response, usage: Mapping[str, Any] | None) -> None:
    if usage is None:
        return
    row.input_tokens = usage["input_tokens"]
    row.cached_tokens = usage["input_tokens_details"]["cached_tokens"]
    row.output_tokens = usage["output_tokens"]
    row.reasoning_tokens = usage["output_tokens_details"]["reasoning_tokens"]


def _items(row: Response, bodies: Iterable[Mapping[str, Any]], direction: Direction) -> list[Item]:
    return [
        Item(
            uid=body["id"],
            response=row,
            project=row.project,
            direction=direction,
            type=body["type"],
            body=orjson.dumps(body).decode(),
        )
        for body in bodies
    ]
