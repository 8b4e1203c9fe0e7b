"""INSERT of events as a statement with arrays: a connection in the pipeline mode of libpq cannot COPY."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from struct import Struct
from typing import Final

from psycopg.postgres import types

from responses_app.store.log.records import Append
from responses_app.store.log.rows.event_codec import NO_DATA, pack_event

INSERT_SQL: Final = """
INSERT INTO responses_app_event (response_id, number, type, data, packed, ms, tokens)
SELECT response.id, number, type, data, packed, ms, tokens
FROM unnest($1::text[], $2::integer[], $3::text[], $4::text[], $5::bytea[], $6::integer[], $7::bytea[])
AS event(uid, number, type, data, packed, ms, tokens),
LATERAL (SELECT id FROM responses_app_response WHERE uid = event.uid LIMIT 1) AS response
"""
# Binary form of an array: dimensions, whether it has nulls, type of the elements, number of elements, first index.
_HEAD, _LENGTH, _INT = Struct("!iiIii"), Struct("!i"), Struct("!i")
_NULL = _LENGTH.pack(-1)


def event_arrays(appends: Sequence[Append]) -> list[bytes]:
    """Return the parameters of INSERT_SQL in binary form: an array for each column, with the id of the response."""
    frames = [(append.log.row.uid, frame) for append in appends for frame in append.frames]
    packed = [pack_event(frame) for _, frame in frames]
    tokens = [bytes_ for append in appends for bytes_ in _tokens(append)]
    return [
        text_array(uid for uid, _ in frames),
        _array("int4", [_INT.pack(frame.number) for _, frame in frames]),
        _array("text", [frame.type.encode() for _, frame in frames]),
        _array("text", [NO_DATA if short else frame.data for (_, frame), short in zip(frames, packed, strict=True)]),
        _array("bytea", packed),
        _array("int4", [_INT.pack(frame.ms) for _, frame in frames]),
        _array("bytea", tokens),
    ]


def text_array(texts: Iterable[str]) -> bytes:
    """Return an array of `text` in binary form."""
    return _array("text", [text.encode() for text in texts])


def _tokens(append: Append) -> list[bytes | None]:
    """Return the column `tokens` of the frames: the last frame has the tokens of all."""
    return [*[None] * (len(append.frames) - 1), append.tokens] if append.frames else []


def _array(element: str, elements: Sequence[bytes | None]) -> bytes:
    parts = [_HEAD.pack(1, None in elements, types[element].oid, len(elements), 1)]
    for one in elements:
        parts += (_NULL,) if one is None else (_LENGTH.pack(len(one)), one)
    return b"".join(parts)
