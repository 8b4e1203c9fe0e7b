"""End of a response: what the statement reads does not depend on what Postgres knows about the tables."""

from __future__ import annotations

from uuid import uuid4

from django.db import connection, transaction
from django.test import TransactionTestCase

from responses_app.store.log.endings import end_logs
from responses_app.store.log.openings import open_logs
from responses_app.store.log.records import Append, Ending, RequestRecord, ResponseLog
from responses_app.store.log.rows.pipeline_connection import SESSION_SQL
from tests.support.store.log_records import NOW, USAGE, log

COUNT = 100
# Rows of the tables that the statements of this transaction have read, in any way.
READ_SQL = """SELECT sum(seq_tup_read + idx_tup_fetch) FROM pg_stat_xact_user_tables
WHERE relname IN ('responses_app_response', 'responses_app_lease')"""


def new_logs(prefix: str) -> list[ResponseLog]:
    """Make logs with a request, so with a lease."""
    logs = [log(f"resp_{prefix}_{place}") for place in range(COUNT)]
    for one in logs:
        one.request, one.worker = RequestRecord("{}", [], "m"), uuid4()
    return logs


def end_each(logs: list[ResponseLog]) -> None:
    """End the responses, each in a separate statement."""
    for one in logs:
        end_logs([Append(one, [], ending=Ending("completed", NOW, [], USAGE))])


class EndingPlanTest(TransactionTestCase):
    """Against the real database, with the settings of the connection of the event loop."""

    def test_end_reads_few_rows_after_an_analysis_of_emptied_tables(self) -> None:
        with connection.cursor() as cursor:
            logs = new_logs("before")
            open_logs([Append(one, [], opens=True) for one in logs])
            end_each(logs)
            for table in ("item", "storedrequest", "response"):
                cursor.execute(f"DELETE FROM responses_app_{table}")  # noqa: S608 - names of this test
            cursor.execute("ANALYZE responses_app_response, responses_app_lease")
            with transaction.atomic():
                for sql in SESSION_SQL:
                    cursor.execute(sql.replace(b"SET ", b"SET LOCAL ").decode())
                logs = new_logs("after")
                open_logs([Append(one, [], opens=True) for one in logs])
                cursor.execute(READ_SQL)
                (before,) = cursor.fetchone()
                end_each(logs)
                cursor.execute(READ_SQL)
                # The lookup of the response, its row to update and its lease.
                self.assertLessEqual(cursor.fetchone()[0] - before, 3 * COUNT)
