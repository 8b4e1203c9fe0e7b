"""Connection of the event loop for prepared statements, which go to Postgres together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import psycopg
from psycopg.adapt import Transformer
from psycopg.pq import ExecStatus, Format
from psycopg.pq.abc import PGresult

from responses_app.store.log.rows.loop_connection import Entry, LoopConnection

# A transaction waits for the disk whatever the settings of the database are. Every statement looks up few rows: a plan that was made
# for an empty table must not read the whole table later. So each is planned once: to compare costs, Postgres takes an array for ten
# rows, and would plan a statement with a shorter one each time.
SESSION_SQL = (
    b"SET synchronous_commit TO on",
    b"SET enable_seqscan TO off",
    b"SET enable_hashjoin TO off",
    b"SET enable_mergejoin TO off",
    b"SET plan_cache_mode TO force_generic_plan",
)


class PipelineConnection(LoopConnection[Entry]):
    """Connection with `statements` by name, each prepared once per connection.

    The statements of a commit go to Postgres in one round trip, in the pipeline mode of libpq, which makes them a transaction.
    """

    statements: ClassVar[Mapping[bytes, str]]

    def __init__(self) -> None:
        super().__init__()
        # Names of the statements of a commit.
        self._sent: list[bytes] = []

    def _prepare(self, link: psycopg.Connection[Any]) -> None:
        for sql in SESSION_SQL:
            link.execute(sql)
        for name, text in self.statements.items():
            link.execute(b"PREPARE %b AS %b" % (name, text.encode()))
        link.pgconn.enter_pipeline_mode()

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
