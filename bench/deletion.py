"""Deletion of many short responses: responses per second, and CPU milliseconds of Python and Postgres for each.

    python -m bench.deletion [--responses 20000] [--chain 1] [--streams 16]

Archived responses of 36 events are copied by SQL, each with two items, and deleted as `manage.py prune --responses` does. With
`--chain N`, each thread has N responses, whose histories have the items before. With `--streams N`, that many streams of 50 events a
second are written before, during and after `manage.py prune` in another process; the figures are the times of their commits.
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime

from bench.capacity.postgres_load import usage
from bench.capacity.writing import WriteLoad
from bench.support.database import add_response, database
from bench.support.quantiles import quantile

DELTAS = 30
DELTAS_OF_STREAM, EVENTS_PER_S, STREAM_S = 400, 50.0, 8.0
QUANTILES = {"p50": 0.5, "p99": 0.99, "longest": 1.0}
# Columns of each copy: the response `number` of the chain `thread`.
COPY_SQL = """
WITH made AS (
  INSERT INTO responses_app_response (uid, request_id, project, model, status, background, streamed, stored, thread, history, metadata,
    error_code, created_at, ended_at, log_form)
  SELECT 'resp_' || n, 'req_' || n, project, model, status, background, streamed, stored, 'resp_' || n - n %% %(chain)s, '{}', '{}', '',
    created_at, ended_at + n * interval '1 ms', 1
  FROM responses_app_response, generate_series(0, %(count)s - 1) AS n WHERE id = %(source)s RETURNING id
), request AS (
  INSERT INTO responses_app_storedrequest SELECT id, request.create_request, request.prompt_tokens
  FROM made, responses_app_storedrequest AS request WHERE request.response_id = %(source)s
), page AS (
  INSERT INTO responses_app_logpage SELECT made.id, first, last, data
  FROM made, responses_app_logpage WHERE response_id = %(source)s
)
INSERT INTO responses_app_item (uid, response_id, project, direction, type, body)
SELECT 'msg_' || made.id || kind, made.id, 'bench', kind, 'message', '{"text": "' || repeat('some words of a message ', 20) || '"}'
FROM made, unnest('{input,output}'::text[]) AS kind ORDER BY made.id, kind
"""
# The items of the responses before in the thread.
HISTORY_SQL = """
UPDATE responses_app_response AS mine SET history = (
  SELECT array_agg(item.id ORDER BY item.id) FROM responses_app_response AS before
  JOIN responses_app_item AS item ON item.response_id = before.id WHERE before.thread = mine.thread AND before.id < mine.id)
WHERE thread <> uid
"""


def fill(count: int, chain: int) -> None:
    """Store so many archived responses."""
    from django.db import connection

    from responses_app.models import StoredRequest
    from responses_app.store.log.archive import archive_log

    source = add_response("resp_source", DELTAS)
    StoredRequest.objects.create(
        response_id=source, create_request='{"x": "' + "y" * 300 + '"}', prompt_tokens=bytes(range(256))
    )
    archive_log(source)
    with connection.cursor() as cursor:
        cursor.execute(COPY_SQL, {"count": count, "chain": chain, "source": source})
        if chain > 1:
            cursor.execute(HISTORY_SQL)
        cursor.execute("VACUUM ANALYZE")


def measure() -> None:
    """Delete all responses and print the figures."""
    from responses_app.models import Item, LogPage, Response
    from responses_app.store.log.retention import prune

    now, before, began, python = datetime.now(UTC), usage(), time.monotonic(), time.process_time()
    longest = deleted = 0.0
    step = began
    for size in prune("responses", now):
        deleted += size
        longest, step = max(longest, time.monotonic() - step), time.monotonic()
    seconds, python, after = time.monotonic() - began, time.process_time() - python, usage()
    postgres = sum(after.cpu.values()) - sum(before.cpu.values())
    left = Response.objects.count() + Item.objects.count() + LogPage.objects.count()
    print(f"deleted {deleted:.0f} responses in {seconds:.1f} s: {deleted / seconds:.0f} a second; rows left: {left}")
    print(f"   longest transaction {longest * 1e3:.0f} ms, WAL {(after.wal - before.wal) / deleted:.0f} bytes a response")
    print(f"   CPU ms a response: Python {python / deleted * 1e3:.3f}, Postgres {postgres / deleted * 1e3:.3f}", flush=True)


async def write(title: str, streams: int) -> None:
    """Write streams for some seconds, and print how long their commits took."""
    from responses_app.store.log.writer import LogWriter

    load, writer = WriteLoad(DELTAS_OF_STREAM, 1, EVENTS_PER_S), LogWriter()
    await load.write(writer, streams, STREAM_S)
    await writer.close()
    times = ", ".join(f"{name} {quantile(load.waits, share) * 1e3:.0f} ms" for name, share in QUANTILES.items())
    print(f"{title}: {len(load.waits)} commits of {streams} streams, {times}", flush=True)


def measure_streams(streams: int) -> None:
    """Write streams before, during and after a deletion by the command."""
    asyncio.run(write("before", streams))
    with subprocess.Popen([sys.executable, "manage.py", "prune", "--responses=0s", "--temporary=off"]):
        asyncio.run(write("deletion", streams))
    asyncio.run(write("after", streams))


def main(argv: Sequence[str] | None = None) -> None:
    """Fill a database and delete everything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--responses", type=int, default=20_000)
    parser.add_argument("--chain", type=int, default=1, help="responses of each thread (default: %(default)s)")
    parser.add_argument("--streams", type=int, default=0, help="streams to write meanwhile (default: only delete)")
    options = parser.parse_args(argv)
    with database():
        fill(options.responses, options.chain)
        if options.streams:
            measure_streams(options.streams)
        else:
            measure()


if __name__ == "__main__":
    main()
