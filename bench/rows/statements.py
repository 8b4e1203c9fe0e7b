"""Statements that append events, which `bench.rows` compares: COPY in two formats, and INSERT with arrays."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, TypeAlias
from weakref import WeakSet

import psycopg
from psycopg.abc import PQGen
from psycopg.generators import copy_to, execute
from psycopg.pq import ExecStatus

COLUMNS: Final = "response_id, number, type, data, ms, tokens"
BINARY_HEADER: Final = b"PGCOPY\n\xff\r\n\0" + struct.pack("!II", 0, 0)
BINARY_TRAILER: Final = struct.pack("!h", -1)
ROW_START: Final = struct.Struct("!hiqiii").pack
LENGTH: Final = struct.Struct("!i").pack
ROW_END: Final = struct.Struct("!ii").pack
MAX_COPY_BYTES = 64 * 1024


class Frame(NamedTuple):
    """Encoded event, as `responses_app.store.log.records.EventFrame`, which needs Django."""

    number: int
    type: str
    data: bytes
    ms: int


class Part(NamedTuple):
    """Events of a response in a commit, with the encoded tokens of the last event."""

    response: int
    frames: Sequence[Frame]
    tokens: bytes | None


Connection: TypeAlias = "psycopg.Connection[Any]"
Write: TypeAlias = Callable[[Connection, Sequence[Part]], None]


def copy_text(connection: Connection, parts: Sequence[Part], after: bytes = b"") -> None:
    """COPY in text format."""
    rows = b"".join([row for part in parts for row in _text_rows(part)])
    connection.wait(_copy(connection, b"COPY event (%b) FROM STDIN%b" % (COLUMNS.encode(), after), rows))


def copy_binary(connection: Connection, parts: Sequence[Part], after: bytes = b"") -> None:
    """COPY in binary format."""
    rows = b"".join([BINARY_HEADER, *[row for part in parts for row in _binary_rows(part)], BINARY_TRAILER])
    connection.wait(_copy(connection, b"COPY event (%b) FROM STDIN (FORMAT binary)%b" % (COLUMNS.encode(), after), rows))


def copy_text_and_check(connection: Connection, parts: Sequence[Part]) -> None:
    """COPY in text format and a call of the check, both in one request and one transaction."""
    copy_text(connection, parts, _check(connection, parts))


def copy_binary_and_check(connection: Connection, parts: Sequence[Part]) -> None:
    """COPY in binary format and a call of the check, both in one request and one transaction."""
    copy_binary(connection, parts, _check(connection, parts))


def copy_appends(connection: Connection, parts: Sequence[Part]) -> None:
    """COPY with one row for all events of a response."""
    rows = b"".join(
        b"%d\t%d\t%d\t%b\t%b\n"
        % (
            part.response,
            part.frames[0].number,
            part.frames[-1].number,
            b"\\n".join(
                b"%d %b %b" % (frame.ms, frame.type.encode(), frame.data.replace(b"\\", b"\\\\")) for frame in part.frames
            ),
            _hex(part.tokens),
        )
        for part in parts
    )
    connection.wait(_copy(connection, b"COPY event (response_id, number, last, data, tokens) FROM STDIN", rows))


def insert_arrays(connection: Connection, parts: Sequence[Part]) -> None:
    """INSERT of arrays, a prepared statement with text parameters."""
    rows = [(part, frame, frame is part.frames[-1]) for part in parts for frame in part.frames]
    parameters = [
        _array(str(part.response).encode() for part, _, _ in rows),
        _array(str(frame.number).encode() for _, frame, _ in rows),
        _array(frame.type.encode() for _, frame, _ in rows),
        _array(_quoted(frame.data) for _, frame, _ in rows),
        _array(str(frame.ms).encode() for _, frame, _ in rows),
        _array(b'"\\\\x%b"' % part.tokens.hex().encode() if last and part.tokens else b"NULL" for part, _, last in rows),
    ]
    _prepare(connection, INSERT)
    connection.wait(_execute(connection, parameters))


INSERT: Final = (
    "INSERT INTO event (response_id, number, type, data, ms, tokens)"
    " SELECT * FROM unnest($1::bigint[], $2::integer[], $3::varchar[], $4::text[], $5::integer[], $6::bytea[])"
)
PREPARE_CHECK: Final = "PREPARE contiguous (bigint[], integer[]) AS SELECT contiguous($1, $2)"
_prepared: WeakSet[Connection] = WeakSet()


def _check(connection: Connection, parts: Sequence[Part]) -> bytes:
    if connection not in _prepared:
        connection.execute(PREPARE_CHECK)
        _prepared.add(connection)
    responses = ",".join([str(part.response) for part in parts])
    firsts = ",".join([str(part.frames[0].number) for part in parts])
    return b"; EXECUTE contiguous('{%b}','{%b}')" % (responses.encode(), firsts.encode())


def _prepare(connection: Connection, statement: str) -> None:
    if connection not in _prepared:
        connection.pgconn.prepare(b"append", statement.encode())
        _prepared.add(connection)


def _execute(connection: Connection, parameters: Sequence[bytes]) -> PQGen[None]:
    connection.pgconn.send_query_prepared(b"append", parameters)
    for result in (yield from execute(connection.pgconn)):
        if result.status != ExecStatus.COMMAND_OK:
            raise psycopg.errors.error_from_result(result)


def _copy(connection: Connection, statement: bytes, rows: bytes) -> PQGen[None]:
    link = connection.pgconn
    link.send_query(statement)
    (result,) = yield from execute(link)
    if result.status != ExecStatus.COPY_IN:
        raise psycopg.errors.error_from_result(result)
    for start in range(0, len(rows), MAX_COPY_BYTES):
        yield from copy_to(link, rows[start : start + MAX_COPY_BYTES], flush=False)
    link.put_copy_end(None)
    for result in (yield from execute(link)):
        if result.status not in (ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK):
            raise psycopg.errors.error_from_result(result)


def _text_rows(part: Part) -> list[bytes]:
    last = len(part.frames) - 1
    return [
        b"%d\t%d\t%b\t%b\t%d\t%b\n"
        % (
            part.response,
            frame.number,
            frame.type.encode(),
            frame.data.replace(b"\\", b"\\\\"),
            frame.ms,
            _hex(part.tokens) if place == last else b"\\N",
        )
        for place, frame in enumerate(part.frames)
    ]


def _binary_rows(part: Part) -> list[bytes]:
    rows, last = [], len(part.frames) - 1
    for place, (number, kind, data, ms) in enumerate(part.frames):
        rows += [ROW_START(6, 8, part.response, 4, number, len(kind)), kind.encode(), LENGTH(len(data)), data, ROW_END(4, ms)]
        tokens = part.tokens if place == last else None
        rows.append(LENGTH(-1) if tokens is None else LENGTH(len(tokens)) + tokens)
    return rows


def _hex(tokens: bytes | None) -> bytes:
    return b"\\N" if tokens is None else b"\\\\x" + tokens.hex().encode()


def _array(values: Any) -> bytes:
    return b"{%b}" % b",".join(values)


def _quoted(data: bytes) -> bytes:
    return b'"%b"' % data.replace(b"\\", b"\\\\").replace(b'"', b'\\"')
