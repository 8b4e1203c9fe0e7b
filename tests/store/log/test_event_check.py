"""Check of event numbers in the database: its cost does not depend on what Postgres knows about the table."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import connection, transaction
from django.test import TransactionTestCase

from responses_app.store.log.records import Append, ResponseLog
from responses_app.store.log.rows.event_codec import packing
from responses_app.store.log.rows.event_copy import copy_events
from tests.support.store.log_records import frame, log

COMMITS = 40
# Rows of the table of events that the statements of this transaction have read, in any way.
READ_SQL = """SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = 'responses_app_event'"""
# Ways to statistics that say nothing about the rows of the next moment.
HISTORIES = {
    "never analysed": [],
    "analysed when all logs were archived": ["DELETE FROM responses_app_event", "ANALYZE responses_app_event"],
    "vacuumed when a single event was left, behind empty pages": [
        "DELETE FROM responses_app_event WHERE ctid <> (SELECT max(ctid) FROM responses_app_event)",
        "VACUUM ANALYZE responses_app_event",
    ],
}


def execute(sql: str) -> list[tuple[int]]:
    """Execute a statement, and return the rows."""
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchall() if cursor.description else []


def add_events(logs: Sequence[ResponseLog]) -> None:
    """Add a row to each of `logs` at a time, as running streams do: an event, or two where rows have several events."""
    size = 2 if packing.allowed else 1
    for start in range(0, size * COMMITS, size):
        copy_events([Append(log, [frame(start + place) for place in range(size)]) for log in logs])


def new_logs(first_key: int) -> list[ResponseLog]:
    """Make logs with primary keys, but without rows of their responses, which no event needs."""
    logs = [log(f"resp_{place}") for place in range(20)]
    for place, one in enumerate(logs):
        one.row.pk = first_key + place
    return logs


class EventCheckTest(TransactionTestCase):
    """Against the real database. Each test begins with a table that was never analysed."""

    def test_commit_reads_one_row_for_each_new_row_of_several_events(self) -> None:
        packing.allowed = True
        self.test_commit_reads_one_event_for_each_new_event()

    def test_commit_reads_one_event_for_each_new_event(self) -> None:
        for place, (history, statements) in enumerate(HISTORIES.items()):
            with self.subTest(history):
                execute("TRUNCATE responses_app_event")
                add_events(new_logs(100 * place))
                for sql in statements:
                    execute(sql)
                logs = new_logs(100 * place + 50)
                with transaction.atomic():
                    before = execute(READ_SQL)
                    add_events(logs)
                    self.assertLessEqual(execute(READ_SQL)[0][0] - before[0][0], COMMITS * len(logs))
