"""INSERT of events as a statement with arrays: a connection in the pipeline mode of libpq cannot COPY."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from struct import Struct
from typing import Final

from psycopg.postgres import types

from responses_app.store.log.records import Append
from responses_app.store.log.rows.event_codec import event_rows

INSERT_SQL: Final = """
INSERT INTO responses_app_event (response_id, number, type, data, packed, ms, tokens, events)
SELECT response.id, number, type, data, packed, ms, tokens, events
FROM unnest($1::text[], $2::integer[], $3::text[], $4::text[], $5::bytea[], $6::integer[], $7::bytea[], $8::integer[])
AS event(uid, number, type, data, packed, ms, tokens, events),
LATERAL (SELECT id FROM responses_app_response WHERE uid = event.uid LIMIT 1) AS response
"""
# Binary form of an array: dimensions, whether it has nulls, type of the elements, number of elements, first index.
_HEAD, _LENGTH, _INT = Struct("!iiIii"), Struct("!i"), Struct("!i")
_NULL = _LENGTH.pack(-1)


def event_arrays(appends: Sequence[Append]) -> list[bytes]:
    """Return the parameters of INSERT_SQL in binary form: an array for each column, with the id of the response."""
    rows = [(append.log.row.uid, row) for append in appends for row in event_rows(append)]
    return [
        text_array(uid for uid, _ in rows),
        _array("int4", [_INT.pack(row.number) for _, row in rows]),
        _array("text", [row.type.encode() for _, row in rows]),
        _array("text", [row.data for _, row in rows]),
        _array("bytea", [row.packed for _, row in rows]),
        _array("int4", [_INT.pack(row.ms) for _, row in rows]),
        _array("bytea", [row.tokens for _, row in rows]),
        _array("int4", [None if row.events is None else _INT.pack(row.events) for _, row in rows]),
    ]


def text_array(texts: Iterable[str]) -> bytes:
    """Return an array of `text` in binary form."""
    return _array("text", [text.encode() for text in texts])


def _array(element: str, elements: Sequence[bytes | None]) -> bytes:
    parts = [_HEAD.pack(1, None in elements, types[element].oid, len(elements), 1)]
    for one in elements:
        parts += (_NULL,) if one is None else (_LENGTH.pack(len(one)), one)
    return b"".join(parts)
