"""COPY of events into the table of events."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import psycopg
from django.db import connection
from psycopg.abc import PQGen
from psycopg.generators import copy_end, copy_to, execute
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGconn

from responses_app.store.log.records import Append
from responses_app.store.log.rows.event_codec import event_rows

COPY_SQL = b"COPY responses_app_event (response_id, number, type, data, packed, ms, tokens, events) FROM STDIN"
# libpq may accept nothing of a buffer larger than its own free space, so it gets at most so many bytes at a time.
MAX_COPY_BYTES = 64 * 1024


def copy_events(appends: Sequence[Append]) -> None:
    """Insert the frames of `appends` with one COPY."""
    # Rows are formatted here and sent with libpq directly: adapting every value in psycopg, and parsing the statement in a cursor,
    # take longer than the database. `wrap_database_errors` converts the errors into Django's. psycopg sends BEGIN before the first
    # statement; inside of a transaction an earlier statement has triggered that.
    raw = connection.connection
    with connection.wrap_database_errors:
        raw.wait(_copy(raw.pgconn, copy_rows(appends)))


def copy_rows(appends: Sequence[Append]) -> bytes:
    """Format the frames of `appends` as rows for COPY_SQL."""
    return b"".join([row for append in appends for row in _rows(append)])


def _copy(link: PGconn, rows: bytes) -> PQGen[None]:
    link.send_query(COPY_SQL)
    # A pooler that has lost the server adds an error of its own to the error of Postgres.
    result, *_ = yield from execute(link)
    if result.status != ExecStatus.COPY_IN:
        raise psycopg.errors.error_from_result(result)
    for start in range(0, len(rows), MAX_COPY_BYTES):
        yield from copy_to(link, rows[start : start + MAX_COPY_BYTES], flush=False)
    yield from copy_end(link, None)


def _rows(append: Append) -> Iterator[bytes]:
    """Format rows for COPY. JSON contains no raw tab or line break, so only backslashes need escaping."""
    for row in event_rows(append):
        data = row.data.replace(b"\\", b"\\\\") if row.packed is None else rb"\n"
        events = b"\\N" if row.events is None else b"%d" % row.events
        columns = (
            append.log.row.pk,
            row.number,
            row.type.encode(),
            data,
            _bytea(row.packed),
            row.ms,
            _bytea(row.tokens),
            events,
        )
        yield b"%d\t%d\t%b\t%b\t%b\t%d\t%b\t%b\n" % columns


def _bytea(value: bytes | None) -> bytes:
    return b"\\N" if value is None else b"\\\\x" + value.hex().encode()
