"""SQL of a group commit: insert and start responses, COPY events, end responses."""

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
from responses_app.store.content import images, tool_outputs
from responses_app.store.content.tool_names import tool_names
from responses_app.store.db import WAIT_FOR_DISK_SQL
from responses_app.store.log.records import Append, ConversationLocked, Fenced, RequestRecord, ResponseLog

COPY_SQL = b"COPY responses_app_event (response_id, number, type, data, ms, tokens) FROM STDIN"
# One statement with one parameter for all responses that end in a commit. Django's `bulk_update` writes a CASE for each of nine
# columns of every row, which took 1 ms per response.
END_SQL = """UPDATE responses_app_response SET status = ending.status, ended_at = ending.ended_at, error_code = ending.error_code,
  input_tokens = ending.input_tokens, cached_tokens = ending.cached_tokens, output_tokens = ending.output_tokens,
  reasoning_tokens = ending.reasoning_tokens, time_to_first_token_ms = ending.time_to_first_token_ms, tools = ending.tools
FROM json_to_recordset(%s) AS ending(id bigint, status text, ended_at timestamptz, error_code text, input_tokens integer,
  cached_tokens integer, output_tokens integer, reasoning_tokens integer, time_to_first_token_ms integer, tools text[])
WHERE responses_app_response.id = ending.id
"""
RELEASE_SQL = (
    "DELETE FROM responses_app_lease WHERE (response_id, epoch) IN (SELECT * FROM unnest(%s::bigint[], %s::integer[]))"
)
# libpq may accept nothing of a buffer larger than its own free space, so it gets at most so many bytes at a time.
MAX_COPY_BYTES = 64 * 1024
# Constraints violated by an event number that exists already or leaves a gap: a different worker has continued the log.
FENCING_CONSTRAINTS = ("event_number", "event_contiguous")
# Set once per connection, unless RESPONSES_DURABILITY is "disk". Commits that open or end a response override the setting.
ASYNC_COMMIT_SQL = "SET synchronous_commit TO off"
_async_connections: WeakSet[object] = WeakSet()


def write(appends: Sequence[Append]) -> None:
    """Write `appends` to the database in a single transaction.

    Raises DatabaseError: ConversationLocked if a conversation has a running response, Fenced if a different worker has taken over.
    """
    with _map_fencing():
        connection.ensure_connection()
        _use_async_commit()
        if not any(map(_needs_transaction, appends)):
            # The usual commit has only deltas: a single statement without BEGIN and COMMIT, hence a single round trip.
            _copy(appends)
            return
        with transaction.atomic(), connection.cursor() as cursor:
            # The start and the end of a response wait for the disk. Lost deltas can be written again (see `lost_appends`).
            if any(append.opens or append.ending or append.wait_for_disk for append in appends):
                cursor.execute(WAIT_FOR_DISK_SQL)
            _open([append for append in appends if append.opens])
            _start([append.log.row.pk for append in appends if append.starts])
            _copy(appends)
            for append in appends:
                if append.tool_outputs:
                    tool_outputs.insert(append.log.row, append.tool_outputs)
            _end(cursor, [append for append in appends if append.ending])


def was_committed(appends: Sequence[Append]) -> bool:
    """Return whether `appends` are in the database, after a commit without a reply. Sets the primary keys of the rows."""
    for append in appends:
        frame, row, end = append.frames[-1], append.log.row, append.ending
        # The log of an ended response may be archived already. The time of the end identifies the commit.
        if end is not None and Response.objects.filter(uid=row.uid, status=end.status, ended_at=end.ended_at).exists():
            continue
        last = Event.objects.filter(response__uid=row.uid, number=frame.number)
        stored = last.values_list("response_id", "data").first()
        # The number may exist with different data, written by a worker that has taken over the response.
        if stored is None or stored[1] != frame.data.decode():
            return False
        row.pk = stored[0]
    return True


def lost_appends(append: Append) -> list[Append]:
    """Find the appends that Postgres lost in a crash, to be written again before `append`.

    Empty if a different worker continues the log, or if the remembered appends do not close the gap.
    """
    log = append.log
    if log.request is None or not Lease.objects.filter(pk=log.row.pk, worker=log.worker, epoch=log.epoch).exists():
        return []
    last = Event.objects.filter(response=log.row.pk).aggregate(last=Max("number"))["last"]
    lost = [recent for _, recent in log.recent if last is not None and recent.frames[0].number > last]
    expected = [] if last is None else [last + 1, *(recent.frames[-1].number + 1 for recent in lost)]
    return lost if lost and expected == [recent.frames[0].number for recent in (*lost, append)] else []


def _needs_transaction(append: Append) -> bool:
    """Return whether `append` has more than frames of a running response, or waits for the disk."""
    return bool(append.opens or append.starts or append.ending or append.wait_for_disk or append.tool_outputs)


@contextmanager
def _map_fencing() -> Iterator[None]:
    try:
        yield
    except IntegrityError as error:
        # The name of the constraint: the message of a trigger does not contain it.
        if isinstance(error.__cause__, psycopg.Error) and error.__cause__.diag.constraint_name in FENCING_CONSTRAINTS:
            raise Fenced(str(error)) from error
        raise


def _use_async_commit() -> None:
    raw = connection.connection
    if raw not in _async_connections and settings.RESPONSES_DURABILITY != "disk":
        with connection.cursor() as cursor:
            cursor.execute(ASYNC_COMMIT_SQL)
        _async_connections.add(raw)


def _open(appends: Sequence[Append]) -> None:
    if not appends:
        return
    for append in appends:
        # In a retry the row may have the primary key of a rolled back insert.
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
        append.log.input_keys = [item.pk for item in items]
        if append.log.images:
            images.insert(items, append.log.images)


def _insert_leases(logs: Iterable[ResponseLog]) -> None:
    """Insert the stored requests and the leases."""
    requests = [(log, log.request) for log in logs if log.request is not None]
    StoredRequest.objects.bulk_create(
        StoredRequest(
            response=log.row, create_request=request.create_request, prompt_tokens=encode_tokens(request.prompt_tokens)
        )
        for log, request in requests
    )
    Lease.objects.bulk_create([_lease(log, request) for log, request in requests])


def _lease(log: ResponseLog, request: RequestRecord) -> Lease:
    waiting = log.worker is None
    return Lease(
        response=log.row,
        worker=log.worker,
        model=request.model,
        waiting=waiting,
        priority=request.priority,
        secrets=request.secrets,
    )


def encode_tokens(tokens: Sequence[int]) -> bytes:
    """Encode token ids: four bytes each, little-endian."""
    return struct.pack(f"<{len(tokens)}I", *tokens)


def decode_tokens(data: bytes) -> list[int]:
    """Decode the result of `encode_tokens`."""
    return list(struct.unpack(f"<{len(data) // 4}I", data))


def _start(keys: Sequence[int]) -> None:
    if keys:
        Response.objects.filter(pk__in=keys).update(status=Status.IN_PROGRESS)
        Lease.objects.filter(pk__in=keys).update(waiting=False)


def _copy(appends: Sequence[Append]) -> None:
    # Rows are formatted here and sent with libpq directly: adapting every value in psycopg, and parsing the statement in a cursor,
    # take longer than the database. `wrap_database_errors` converts the errors into Django's. psycopg sends BEGIN before the first
    # statement; inside of a transaction an earlier statement has triggered that.
    rows, raw = b"".join([row for append in appends for row in _rows(append)]), connection.connection
    with connection.wrap_database_errors:
        raw.wait(_copy_rows(raw.pgconn, rows))


def _copy_rows(link: PGconn, rows: bytes) -> PQGen[None]:
    link.send_query(COPY_SQL)
    (result,) = yield from execute(link)
    if result.status != ExecStatus.COPY_IN:
        raise psycopg.errors.error_from_result(result)
    for start in range(0, len(rows), MAX_COPY_BYTES):
        yield from copy_to(link, rows[start : start + MAX_COPY_BYTES], flush=False)
    yield from copy_end(link, None)


def _rows(append: Append) -> Iterator[bytes]:
    """Format frames for COPY. JSON contains no raw tab or line break, so only backslashes need escaping."""
    pk, last = append.log.row.pk, len(append.frames) - 1
    for position, frame in enumerate(append.frames):
        encoded = append.tokens if position == last else None
        tokens = b"\\N" if encoded is None else b"\\\\x" + encoded.hex().encode()
        data = frame.data.replace(b"\\", b"\\\\")
        yield b"%d\t%d\t%b\t%b\t%d\t%b\n" % (pk, frame.number, frame.type.encode(), data, frame.ms, tokens)


def _end(cursor: CursorWrapper, appends: Sequence[Append]) -> None:
    if not appends:
        return
    _release_leases(cursor, [append.log for append in appends if append.log.request is not None])
    outputs: list[tuple[ResponseLog, list[Item]]] = []
    for append in appends:
        row, ending = append.log.row, append.ending
        assert ending is not None  # noqa: S101 - chosen by the caller
        row.status, row.ended_at, row.error_code = ending.status, ending.ended_at, ending.error_code
        _set_usage(row, ending.usage)
        row.tools = tool_names(ending.items)
        outputs.append((append.log, _items(row, ending.items, Direction.OUTPUT)))
    Item.objects.bulk_create([item for _, items in outputs for item in items])
    for log, items in outputs:
        log.output_keys = [item.pk for item in items]
    ends = [{field: getattr(append.log.row, field) for field in ENDING_FIELDS} for append in appends]
    cursor.execute(END_SQL, [orjson.dumps(ends).decode()])
    _add_to_conversation([append.log.row for append in appends])


def _release_leases(cursor: CursorWrapper, logs: Sequence[ResponseLog]) -> None:
    """Delete the leases. Raises Fenced if a different worker holds a lease: only the holder may end a response."""
    if not logs:
        return
    cursor.execute(RELEASE_SQL, [[log.row.pk for log in logs], [log.epoch for log in logs]])
    released = cursor.rowcount
    if released != len(logs):
        raise Fenced(f"{len(logs) - released} of {len(logs)} leases are held by another worker")


def _add_to_conversation(rows: Sequence[Response]) -> None:
    """Append input and output items to the conversations. A failed or cancelled response adds nothing."""
    rows = [row for row in rows if row.conversation_id is not None and row.status in ADDED_STATUSES]
    if not rows:
        return
    # Without conversations deleted meanwhile.
    locked = Conversation.objects.select_for_update().filter(pk__in=[row.conversation_id for row in rows])
    conversations = {
        row.pk: row.conversation_id for row in rows if row.conversation_id in set(locked.values_list("pk", flat=True))
    }
    items = Item.objects.filter(response_id__in=conversations).order_by("pk").values_list("pk", "uid", "response_id")
    entries = [
        ConversationItem(conversation_id=conversations[response], item_id=pk, uid=uid)
        for pk, uid, response in items
        if response is not None
    ]
    # An input item with the id of an item of the conversation has the existing position.
    ConversationItem.objects.bulk_create(entries, ignore_conflicts=True)


ADDED_STATUSES = (Status.COMPLETED, Status.INCOMPLETE)
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


def _set_usage(row: Response, usage: Mapping[str, Any] | None) -> None:
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
