"""Connection of the event loop for transactions: responses begin, start and end, with their events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg
from django.db import DatabaseError
from psycopg.adapt import Transformer
from psycopg.pq import ExecStatus, Format, TransactionStatus
from psycopg.pq.abc import PGresult

from responses_app.store.log.endings import ADD_ITEMS_SQL, END_SQL, conversation_keys, end_parameters, note_ended
from responses_app.store.log.openings import OPEN_SQL, START_SQL, note_opened, open_parameters
from responses_app.store.log.records import Append
from responses_app.store.log.rows.event_insert import INSERT_SQL, bigint_array, event_arrays
from responses_app.store.log.rows.loop_connection import LoopConnection

# A connection waits for the disk whatever the settings of the database are.
SYNC_COMMIT_SQL = "SET synchronous_commit TO on"
# Prepared once per connection.
OPEN, START, EVENTS, END, ADD_ITEMS = b"open_logs", b"start_queued", b"insert_events", b"end_logs", b"add_items"
STATEMENTS = {OPEN: OPEN_SQL, START: START_SQL, EVENTS: INSERT_SQL, END: END_SQL, ADD_ITEMS: ADD_ITEMS_SQL}


class TransactionConnection(LoopConnection):
    """Connection that commits appends in a transaction, and waits for the disk.

    The statements go to Postgres in the pipeline mode of libpq: all that need no earlier result in one round trip.
    """

    def __init__(self) -> None:
        super().__init__()
        # Names of the statements sent since the last results.
        self._sent: list[bytes] = []

    def _prepare(self, link: psycopg.Connection[Any]) -> None:
        link.execute(SYNC_COMMIT_SQL)
        for name, sql in STATEMENTS.items():
            link.execute(b"PREPARE %b AS %b" % (name, sql.encode()))
        link.pgconn.enter_pipeline_mode()

    async def _commit(self, appends: Sequence[Append]) -> None:
        try:
            self._sent.clear()
            self._send(b"BEGIN")
            await self._open_logs([append for append in appends if append.opens])
            await self._append([append for append in appends if append.starts], appends)
            self._send(b"COMMIT")
            await self._results()
        except (psycopg.Error, DatabaseError):
            await self._roll_back()
            raise

    async def _open_logs(self, opening: Sequence[Append]) -> None:
        """Insert the responses that begin. Their keys are known then."""
        if opening:
            logs = [append.log for append in opening]
            self._execute(OPEN, open_parameters(logs), Format.TEXT)
            note_opened(logs, *self._row((await self._results())[OPEN]))

    async def _append(self, started: Sequence[Append], appends: Sequence[Append]) -> None:
        """Start queued responses, insert the events, end responses. Raises Fenced if a different worker holds a lease."""
        if started:
            self._execute(START, [bigint_array(append.log.row.pk for append in started)])
        if any(append.frames for append in appends):
            self._execute(EVENTS, event_arrays(appends))
        ending = [append for append in appends if append.ending]
        if ending:
            self._execute(END, end_parameters(ending), Format.TEXT)
        if keys := conversation_keys(ending):
            self._execute(ADD_ITEMS, [bigint_array(keys)])
        results = await self._results()
        if ending:
            note_ended(ending, *self._row(results[END]))

    def _send(self, sql: bytes) -> None:
        self._sent.append(sql)
        self._link.send_query_params(sql, None)

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
        sent, self._sent = self._sent, []
        for result in results:
            if result.status not in (ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK):
                raise psycopg.errors.error_from_result(result)
        return dict(zip(sent, results, strict=True))

    async def _roll_back(self) -> None:
        """Leave the transaction after a refused statement; nothing to do if the connection is lost."""
        link = self._connection
        if link is not None and link.pgconn.transaction_status in (TransactionStatus.INTRANS, TransactionStatus.INERROR):
            self._send(b"ROLLBACK")
            await self._results()

    def _row(self, result: PGresult) -> tuple[Any, ...]:
        """Return the only row of a result."""
        transformer = Transformer(self._connection)
        transformer.set_pgresult(result)
        return transformer.load_row(0, tuple) or ()
