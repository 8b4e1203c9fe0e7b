"""Full load for minutes: tokens per second, first token, logs that wait for archiving and the size of the tables, every 15 s.

    python -m bench.sustain [--minutes 10] [--streams 64] [--tokens 128] [--web 2] [--kill-archiver 60] [--check] [--rest] [--vllm]
        [--write-docs]

The model has two layers and random weights. With `--check` each stream is compared with its replay afterwards, which costs the load
some CPU. With `--rest` the bytes of a response by table follow, after all logs are archived. With `--vllm` vLLM's own endpoint gets
the same load afterwards, for the same time.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

import psutil
import psycopg

from bench.compare import random_model
from bench.compare.contenders import HOST, KEY, PARSERS, ComparedModel, our_command, vllm_command
from bench.support.docs import WRITE_DOCS, conditions, require_section, write_section
from bench.support.load import MakeClient, send_each
from bench.support.markdown import markdown_row, markdown_table, number_table
from bench.support.quantiles import quantile
from bench.support.replay_check import SeenStreams, find_different
from bench.support.servers import BenchServer, end_on_sigterm, serve
from bench.support.stream_client import StreamClient, StreamResult, Target
from responses_app.installation.database_url import superuser_url

EVERY_S: Final = 15.0
PORT: Final = 8821
SECTION: Final = "sustain"
ARCHIVER: Final = "responses_app.server.processes.archiver"
MIB: Final = 1024 * 1024
SIZES_SQL: Final = """
SELECT count(*) FILTER (WHERE ended_at < now() - interval '30 s'),
  COALESCE(extract(epoch FROM now() - interval '30 s' - min(ended_at)), 0)::float,
  pg_total_relation_size('responses_app_event'), pg_database_size(current_database())
FROM responses_app_response WHERE log_form = 0
"""
# Bytes of each table with its indexes, the partitions of a table together.
TABLES_SQL: Final = r"""
SELECT regexp_replace(regexp_replace(relname, '^responses_app_', ''), '_from_\d+$', '') AS name,
  sum(pg_table_size(oid))::float, sum(pg_indexes_size(oid))::float
FROM pg_class WHERE relkind = 'r' AND relname LIKE 'responses\_app\_%' GROUP BY 1 ORDER BY 1
"""
# The space of these is used again.
REUSED_TABLES: Final = ("event", "lease")
ARCHIVE_LIMIT_S: Final = 300.0
HEAD: Final = (
    "s",
    "tokens/s",
    "first token p50, p95 (ms)",
    "logs waiting",
    "oldest (s)",
    "events (MiB)",
    "database (MiB)",
    "WAL (kB a response)",
    "RSS (MiB)",
)

# Gets the seconds since the begin, the length of the interval in seconds, and the streams that ended in it.
Report: TypeAlias = Callable[[float, float, list[StreamResult]], None]


@dataclass(frozen=True, slots=True)
class Interval:
    """Figures of an interval that ended `at` seconds after the begin. `stored` is empty for vLLM's own server."""

    at: float
    rate: float
    first_p50_ms: float
    first_p95_ms: float
    rss_mib: float
    stored: tuple[float, ...] = ()
    wal_kb: float | None = None

    def cells(self) -> list[str]:
        """Return the cells of a table row."""
        waiting, oldest, events, database = self.stored or (None,) * 4
        numbers = (waiting, oldest, events and events / MIB, database and database / MIB, self.wal_kb)
        shown = ["" if number is None else f"{max(number, 0):,.0f}" for number in numbers]
        first = f"{self.first_p50_ms:.0f}, {self.first_p95_ms:.0f}"
        return [f"{self.at:.0f}", f"{self.rate:,.0f}", first, *shown, f"{self.rss_mib:,.0f}"]


def main() -> None:
    """Run the benchmark."""
    options = _parse()
    end_on_sigterm()
    load = os.getloadavg()[0]
    if options.write_docs:
        require_section(SECTION)
    with tempfile.TemporaryDirectory(prefix="verbatim-sustain-") as name:
        folder = Path(name)
        source = str(random_model.build_random_model(folder))
        model = ComparedModel(random_model.NAME, source, PARSERS[random_model.NAME], False, random_model.ENGINE_OPTIONS)
        lines = [f"{options.streams} streams of {options.tokens} tokens, `--web {options.web}`:", ""]
        lines += _measure_ours(model, folder, options)
        if options.vllm:
            lines += ["", "vLLM's own endpoint:", "", *_measure_vllm(model, folder, options)]
    if options.write_docs:
        write_section(SECTION, [conditions(1, load), "", *lines])


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--streams", type=int, default=64)
    parser.add_argument("--tokens", type=int, default=128, help="tokens of a request")
    parser.add_argument("--web", type=int, default=1, help="web processes; more than one have the engine in a worker")
    parser.add_argument("--port", type=int, default=PORT)
    parser.add_argument(
        "--kill-archiver", type=float, metavar="SECONDS", help="interval at which the archiver process is killed"
    )
    parser.add_argument("--check", action="store_true", help="compare each stream with its replay; end with 1 if one differs")
    parser.add_argument("--rest", action="store_true", help="print the bytes of a response by table, at rest")
    parser.add_argument("--vllm", action="store_true", help="measure vLLM's own endpoint too")
    parser.add_argument(WRITE_DOCS, action="store_true", help="write the table to docs/operations")
    return parser.parse_args()


def _measure_ours(model: ComparedModel, folder: Path, options: argparse.Namespace) -> list[str]:
    data = folder / "data"
    env = {"RESPONSES_DATA_DIR": str(data), "RESPONSES_API_KEY": KEY, "RESPONSES_LOG_LEVEL": "WARNING"}
    more = ["--web", str(options.web)] if options.web > 1 else []
    command = our_command(model, options.port, *more)
    with (
        serve(command, options.port, model.env | env, folder / "verbatim.log") as server,
        psycopg.connect(superuser_url(data), autocommit=True) as link,
    ):
        before = _table_sizes(link)
        target = Target(HOST, options.port, model.name, KEY)
        lines = _measure(target, server, options, link, SeenStreams() if options.check else None)
        return [*lines, "", *_describe_rest(link, before)] if options.rest else lines


def _table_sizes(link: psycopg.Connection[tuple[float, ...]]) -> dict[str, tuple[float, float]]:
    """Return the bytes of each table, and of the indexes of each table."""
    return {str(name): (table, indexes) for name, table, indexes in link.execute(TABLES_SQL).fetchall()}


def _describe_rest(link: psycopg.Connection[tuple[float, ...]], before: Mapping[str, tuple[float, float]]) -> list[str]:
    """Wait until all logs are archived, and return a table with the bytes that each response added. Raises TimeoutError."""
    deadline = time.monotonic() + ARCHIVE_LIMIT_S
    while link.execute("SELECT count(*) FROM responses_app_response WHERE log_form = 0").fetchone() != (0,):
        if time.monotonic() > deadline:
            raise TimeoutError("logs are still waiting for archiving")
        time.sleep(1)
    link.execute("SELECT gin_clean_pending_list('item_search'::regclass)")
    link.execute("VACUUM")
    count = (link.execute("SELECT count(*) FROM responses_app_response").fetchone() or (0,))[0]
    added = {
        name: tuple((after - then) / count for after, then in zip(sizes, before.get(name, (0.0, 0.0)), strict=True))
        for name, sizes in _table_sizes(link).items()
        if name not in REUSED_TABLES
    }
    rows = [(name, table, indexes) for name, (table, indexes) in added.items() if table + indexes >= 1]
    rows.append(("in all", sum(table for table, _ in added.values()), sum(indexes for _, indexes in added.values())))
    cells = [[name, *(f"{number:,.0f}" for number in (table, indexes, table + indexes))] for name, table, indexes in rows]
    lines = markdown_table(("table", "bytes a response", "of its indexes", "together"), cells)
    print(*lines, sep="\n", flush=True)
    return lines


def _measure_vllm(model: ComparedModel, folder: Path, options: argparse.Namespace) -> list[str]:
    with serve(vllm_command(model, options.port), options.port, model.env, folder / "vllm.log") as server:
        return _measure(Target(HOST, options.port, model.name), server, options, None, None)


def _measure(
    target: Target,
    server: BenchServer,
    options: argparse.Namespace,
    link: psycopg.Connection[tuple[float, ...]] | None,
    seen: SeenStreams | None,
) -> list[str]:
    """Send the load, print each interval, and return the lines of the table. Ends the program if a replay differs."""
    lines = number_table(HEAD, [])
    print(lines[0], flush=True)
    wal = [_wal(link)]

    def report(at: float, seconds: float, streams: list[StreamResult]) -> None:
        first = [1e3 * (stream.times[0] - stream.began) for stream in streams if stream.times] or [0.0]
        stored = link.execute(SIZES_SQL).fetchone() if link is not None else None
        rate = sum(stream.tokens for stream in streams) / seconds
        wal.append(_wal(link))
        wal_kb = (wal[-1] - wal[-2]) / 1000 / max(len(streams), 1) if link is not None else None
        interval = Interval(at, rate, quantile(first, 0.5), quantile(first, 0.95), _rss_mib(server), stored or (), wal_kb)
        lines.append(markdown_row(interval.cells()))
        print(lines[-1], flush=True)

    kills = options.kill_archiver if link is not None else None
    asyncio.run(_send(target, options, report, seen.client if seen is not None else StreamClient, _kills(server, kills)))
    if seen is not None:
        different = asyncio.run(find_different(target, seen))
        lines += ["", f"{len(seen.hashes):,} streams were replayed, {len(different)} of them differ."]
        print(lines[-1], *different[:20], sep="\n", flush=True)
        if different:
            raise SystemExit(1)
    return lines


async def _kills(server: BenchServer, every_s: float | None) -> None:
    """Kill the archiver process at an interval, until cancelled."""
    while every_s is not None:
        await asyncio.sleep(every_s)
        for process in psutil.Process(server.process.pid).children(recursive=True):
            with suppress(psutil.Error):
                if ARCHIVER in process.cmdline():
                    process.kill()
                    print("The archiver process was killed.", flush=True)


async def _send(
    target: Target, options: argparse.Namespace, report: Report, make_client: MakeClient, kills: Coroutine[None, None, None]
) -> None:
    """Send requests until the time is over; report each interval with the number of ended streams."""
    killer = asyncio.create_task(kills)
    ended: list[StreamResult] = []
    began = time.monotonic()
    until = began + 60 * options.minutes
    requests = _requests(target, options.tokens, until)
    senders = [asyncio.create_task(send_each(target, requests, ended.append, make_client)) for _ in range(options.streams)]
    reported = began
    while time.monotonic() < until:
        await asyncio.sleep(EVERY_S)
        now, streams = time.monotonic(), ended[:]
        ended.clear()
        await asyncio.to_thread(report, now - began, now - reported, streams)
        reported = now
    await asyncio.gather(*senders)
    killer.cancel()


def _requests(target: Target, tokens: int, until: float) -> Iterator[bytes]:
    for number in itertools.count():
        if time.monotonic() > until:
            return
        fields = {"temperature": 0, "max_output_tokens": tokens, "store": True}
        yield target.request(input=f"{number}. Tell me a long story about a dragon.", **fields)


def _rss_mib(server: BenchServer) -> float:
    """Return the memory of the server without the engine's processes and Postgres, in MiB."""
    parent = psutil.Process(server.process.pid)
    own = [one for one in (parent, *parent.children(recursive=True)) if one.name().startswith("python")]
    return float(sum(one.memory_info().rss for one in own)) / MIB


def _wal(link: psycopg.Connection[tuple[float, ...]] | None) -> float:
    """Return the bytes of WAL that Postgres has written; 0 without a Postgres."""
    row = link.execute("SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float").fetchone() if link is not None else None
    return row[0] if row is not None else 0.0


if __name__ == "__main__":
    main()
