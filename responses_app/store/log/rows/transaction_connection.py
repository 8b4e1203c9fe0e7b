"""Connection of the event loop for transactions: responses begin, start and end, with their events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg
from psycopg.adapt import Transformer
from psycopg.pq import ExecStatus, Format
from psycopg.pq.abc import PGresult

from responses_app.store.limits.counters import SETTLE_SQL
from responses_app.store.log.endings import (
    ADD_ITEMS_SQL,
    END_SQL,
    end_parameters,
    extends_conversation,
    note_ended,
    settlement,
)
from responses_app.store.log.openings import OPEN_SQL, START_SQL, note_opened, open_parameters
from responses_app.store.log.records import Append
from responses_app.store.log.rows.event_insert import INSERT_SQL, event_arrays, text_array
from responses_app.store.log.rows.loop_connection import LoopConnection

# A transaction waits for the disk whatever the settings of the database are. Every statement looks up few rows: a plan that was made
# for an empty table must not read the whole table later.
SESSION_SQL = (
    b"SET synchronous_commit TO on",
    b"SET enable_seqscan TO off",
    b"SET enable_hashjoin TO off",
    b"SET enable_mergejoin TO off",
)
# Prepared once per connection.
OPEN, START, EVENTS, END = b"open_logs", b"start_queued", b"insert_events", b"end_logs"
ADD_ITEMS, SETTLE = b"add_items", b"settle_limits"
STATEMENTS = {OPEN: OPEN_SQL, START: START_SQL, EVENTS: INSERT_SQL, END: END_SQL, ADD_ITEMS: ADD_ITEMS_SQL, SETTLE: SETTLE_SQL}


class TransactionConnection(LoopConnection):
    """Connection that commits appends in a transaction, and waits for the disk.

    The statements go to Postgres in one round trip, in the pipeline mode of libpq, which makes them a transaction.
    """

    def __init__(self) -> None:
        super().__init__()
        # Names of the statements sent since the last results.
        self._sent: list[bytes] = []

    def _prepare(self, link: psycopg.Connection[Any]) -> None:
        for sql in SESSION_SQL:
            link.execute(sql)
        for name, text in STATEMENTS.items():
            link.execute(b"PREPARE %b AS %b" % (name, text.encode()))
        link.pgconn.enter_pipeline_mode()

    async def _commit(self, appends: Sequence[Append]) -> None:
        opened = [append.log for append in appends if append.opens]
        ended = [append for append in appends if append.ending]
        self._sent = []
        if opened:
            self._execute(OPEN, open_parameters(opened), Format.TEXT)
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

    def _execute(self, name: bytes, parameters: Sequence[bytes], format: Format = Format.BINARY) -> None:
        self._sent.append(name)
        self._link.send_query_prepared(name, parameters, [format] * len(parameters), result_format=Format.BINARY)

    async def _results(self) -> dict[bytes, PGresult]:
        """Send the statements, and return the result of each. Raises the first error, when all have been answered."""
        self._link.pipeline_sync()
        await self._flush()
        results, was_none = list[PGresult](), False
        while True:
            result = await self._next_result()
            if result is None:
                # A single None ends a statement. libpq has nothing more to say of a lost connection.
                if was_none:
                    break
            elif result.status == ExecStatus.PIPELINE_SYNC:
                break
            else:
                results.append(result)
            was_none = result is None
        for result in results:
            if result.status not in (ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK):
                raise psycopg.errors.error_from_result(result)
        return dict(zip(self._sent, results, strict=True))

    def _row(self, result: PGresult) -> tuple[Any, ...]:
        """Return the only row of a result."""
        transformer = Transformer(self._connection)
        transformer.set_pgresult(result)
        return transformer.load_row(0, tuple) or ()
