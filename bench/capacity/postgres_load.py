"""Load on a single Postgres alone: events per second, CPU, WAL and table bytes, without engines, clients and HTTP.

    python -m bench.capacity.postgres_load [--processes 1 2 4] [--streams 64] [--batch 1] [--rate TOKENS_PER_S] [--seconds 8]

Processes write responses through the log writer of the server. Then their logs are archived. Postgres has the settings of the
embedded one. CPU times are those of Postgres's processes: sessions, WAL writer, checkpointer and autovacuum.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields

import psutil

from bench.capacity.writing import Counts
from bench.support.database import database

# Partitions count for their table.
SIZES_SQL = """
SELECT name, sum(pg_total_relation_size(oid)) FROM unnest(%s::text[]) AS name, pg_class
WHERE oid = ('responses_app_' || name)::regclass
OR oid IN (SELECT inhrelid FROM pg_inherits WHERE inhparent = ('responses_app_' || name)::regclass)
GROUP BY name
"""
TABLES = ("event", "logpage", "response", "item", "storedrequest", "lease")


@dataclass(frozen=True, slots=True)
class PostgresUsage:
    """State of Postgres: CPU seconds by kind of process, WAL position in bytes, bytes of the tables with indexes."""

    cpu: dict[str, float]
    wal: int
    tables: dict[str, int]


def usage() -> PostgresUsage:
    """Read the usage of the Postgres of DATABASE_URL."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint")
        wal = int(cursor.fetchone()[0])
        cursor.execute(SIZES_SQL, [list(TABLES)])
        tables = {name: int(size) for name, size in cursor.fetchall()}
    return PostgresUsage(_cpu_by_kind(), wal, tables)


def _cpu_by_kind() -> dict[str, float]:
    """CPU seconds of Postgres's processes: `session`, or the name of a background process."""
    used: dict[str, float] = {}
    for process in psutil.Process().children(recursive=True):
        if process.name() != "postgres":
            continue
        title = " ".join(process.cmdline())
        kind = next(
            (name for name in ("walwriter", "checkpointer", "background writer", "autovacuum") if name in title), "session"
        )
        times = process.cpu_times()
        used[kind] = used.get(kind, 0.0) + times.user + times.system
    return used


@contextmanager
def writers(count: int, options: argparse.Namespace) -> Iterator[list[subprocess.Popen[str]]]:
    """Processes that are ready to write and end with the block."""
    command = [sys.executable, "-m", "bench.capacity.writing", "--streams", str(max(options.streams // count, 1))]
    for name in ("deltas", "batch", "seconds", "rate"):
        command += [f"--{name}", str(getattr(options, name))]
    started = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ})
        for _ in range(count)
    ]
    try:
        for process in started:
            if _read(process) != "ready":
                raise RuntimeError("a writing process did not start")
        yield started
    finally:
        for process in started:
            process.communicate()


def _read(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def _go(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def measure(count: int, options: argparse.Namespace) -> None:
    """Write with `count` processes and print the figures."""
    with writers(count, options) as processes:
        before = usage()
        for process in processes:
            _go(process)
        results = [Counts(**json.loads(_read(process))) for process in processes]
        after = usage()
    total = Counts(*(sum(getattr(one, field.name) for one in results) for field in fields(Counts)))
    seconds = total.seconds / count
    cpu = {kind: spent - before.cpu.get(kind, 0.0) for kind, spent in after.cpu.items()}
    print(
        f"{count} processes, {options.streams} streams, {options.batch} deltas an append: "
        f"{total.events / seconds:.0f} events/s, {total.responses / seconds:.1f} responses/s, "
        f"{total.event_bytes / total.events:.0f} bytes of JSON an event",
        flush=True,
    )
    _print_each("CPU µs an event: Postgres", {"all": sum(cpu.values()), **cpu, "writers": total.cpu}, 1e6 / total.events)
    _print_growth(before, after, total.events, total.responses)


def _print_each(title: str, values: dict[str, float], factor: float) -> None:
    print(f"   {title}: " + ", ".join(f"{name} {value * factor:.1f}" for name, value in values.items() if value), flush=True)


def _print_growth(before: PostgresUsage, after: PostgresUsage, events: int, responses: int) -> None:
    growth = {name: after.tables[name] - before.tables[name] for name in TABLES}
    _print_each("bytes an event", {"WAL": after.wal - before.wal, "table of events": growth.pop("event")}, 1 / events)
    _print_each("bytes a response, beside events", dict(growth), 1 / responses)


def archive(limit: int) -> None:
    """Archive up to `limit` logs and print the cost for each event."""
    from responses_app.models import LogPage, Response
    from responses_app.store.log.archive import archive_log

    keys = list(Response.objects.exclude(ended_at=None).order_by("pk").values_list("pk", flat=True)[:limit])
    before, began, cpu_before = usage(), time.monotonic(), time.process_time()
    events = sum(archive_log(pk) for pk in keys)
    seconds, cpu_before, after = time.monotonic() - began, time.process_time() - cpu_before, usage()
    cpu = sum(after.cpu.values()) - sum(before.cpu.values())
    print(f"archived {events} events of {len(keys)} responses in {seconds:.1f} s, {LogPage.objects.count()} pages", flush=True)
    _print_each("CPU µs an event", {"Postgres": cpu, "archiver": cpu_before}, 1e6 / events)
    pages = after.tables["logpage"] - before.tables["logpage"]
    _print_each("bytes an event", {"WAL": after.wal - before.wal, "pages": pages}, 1 / events)


def main(argv: Sequence[str] | None = None) -> None:
    """Measure with each number of processes, then archive."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2, 4])
    for name, default in (("streams", 64), ("deltas", 400), ("batch", 1), ("archived", 500)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--rate", type=float, default=0.0, help="tokens per second of each stream (default: no pauses)")
    parser.add_argument("--seconds", type=float, default=8.0)
    options = parser.parse_args(argv)
    with database():
        for count in options.processes:
            measure(count, options)
        archive(options.archived)


if __name__ == "__main__":
    main()
