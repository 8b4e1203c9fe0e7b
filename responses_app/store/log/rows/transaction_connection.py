"""Connection of the event loop for transactions: responses begin, start and end, with their events."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from struct import Struct
from typing import Final

from psycopg.postgres import types
from psycopg.pq import Format

from responses_app.store.limits.counters import SETTLE_SQL
from responses_app.store.log.endings import (
    ADD_ITEMS_SQL,
    END_SQL,
    end_parameters,
    extends_conversation,
    note_ended,
    settlement,
)
from responses_app.store.log.openings import (
    CHECK_HISTORY_SQL,
    OPEN_SQL,
    START_SQL,
    continuing,
    note_opened,
    open_parameters,
)
from responses_app.store.log.records import Append
from responses_app.store.log.rows.event_codec import event_rows
from responses_app.store.log.rows.pipeline_connection import PipelineConnection

# A statement with arrays, because a connection in the pipeline mode of libpq cannot COPY.
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


OPEN, START, EVENTS, END = b"open_logs", b"start_queued", b"insert_events", b"end_logs"
CHECK, ADD_ITEMS, SETTLE = b"check_history", b"add_items", b"settle_limits"
STATEMENTS = {
    OPEN: OPEN_SQL,
    CHECK: CHECK_HISTORY_SQL,
    START: START_SQL,
    EVENTS: INSERT_SQL,
    END: END_SQL,
    ADD_ITEMS: ADD_ITEMS_SQL,
    SETTLE: SETTLE_SQL,
}


class TransactionConnection(PipelineConnection[Append]):
    """Connection that commits appends in a transaction, and waits for the disk."""

    statements = STATEMENTS

    async def _commit(self, appends: Sequence[Append]) -> None:
        opened = [append.log for append in appends if append.opens]
        ended = [append for append in appends if append.ending]
        self._sent = []
        if opened:
            self._execute(OPEN, open_parameters(opened), Format.TEXT)
        if uids := continuing(opened):
            self._execute(CHECK, [text_array(uids)])
        if started := [append.log.row.uid for append in appends if append.starts]:
            self._execute(START, [text_array(started)])
        if any(append.frames for append in appends):
            self._execute(EVENTS, event_arrays(appends))
        if ended:
            self._execute(END, end_parameters(ended), Format.TEXT)
        if uids := extends_conversation(ended):
            self._execute(ADD_ITEMS, [text_array(uids)])
        # Last, as other processes wait for the locks of the counters.
        if charged := [append for append in ended if append.log.charges]:
            self._execute(SETTLE, [settlement(charged)], Format.TEXT)
        results = await self._results()
        if opened:
            note_opened(opened, *self._row(results[OPEN]))
        if ended:
            note_ended(ended, self._row(results[END])[0])
