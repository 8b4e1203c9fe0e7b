"""CPU time of the rows of the log: tables, checks and statements compared on a Postgres of their own.

    python -m bench.rows [--events 3200] [--batches 1x1 16x1 64x1 256x1 1x64] [--variants NAME ...]

A batch `64x1` is a commit with one event for each of 64 responses. The figures are microseconds of CPU time per event: of all
processes of Postgres, and of the client in this process.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import psycopg

from bench.rows.statements import (
    Connection,
    Frame,
    Part,
    Write,
    copy_appends,
    copy_binary,
    copy_binary_and_check,
    copy_text,
    copy_text_and_check,
    insert_arrays,
)
from bench.rows.tables import CHECKS, TABLES
from responses_app.server.postgres.cluster import Postgres

TOKENS = b"\x01\x02\x03\x04"


class Variant(NamedTuple):
    """Table, check of the numbers, and statement."""

    table: str
    check: str
    write: Write


VARIANTS: Final = {
    "id, trigger for rows, text COPY": Variant("id", "rows", copy_text),
    "key, trigger for rows, text COPY": Variant("key", "rows", copy_text),
    "key, trigger with lookups, text COPY": Variant("key", "lookups", copy_text),
    "key, trigger for first rows, text COPY": Variant("key", "heads", copy_text),
    "key, called check, text COPY": Variant("key", "called", copy_text_and_check),
    "key, called query, text COPY": Variant("key", "queried", copy_text_and_check),
    "key, called check, binary COPY": Variant("key", "called", copy_binary_and_check),
    "key, no check, text COPY": Variant("key", "none", copy_text),
    "key, no check, binary COPY": Variant("key", "none", copy_binary),
    "key, no check, INSERT of arrays": Variant("key", "none", insert_arrays),
    "partitions, no check, text COPY": Variant("partitions", "none", copy_text),
    "partitions, called check, binary COPY": Variant("partitions", "called", copy_binary_and_check),
    "row per append, no check, text COPY": Variant("append", "none", copy_appends),
}


class Cost(NamedTuple):
    """CPU microseconds per event."""

    postgres: float
    client: float


def main() -> None:
    """Measure the variants in turns, and print the least figures."""
    options = _options()
    variants = {name: variant for name, variant in VARIANTS.items() if all(word in name for word in options.variants)}
    costs: dict[tuple[str, str], list[Cost]] = {}
    with tempfile.TemporaryDirectory(prefix="verbatim-rows-") as folder, Postgres(Path(folder), {}) as postgres:
        for _ in range(options.rounds):
            for batch in options.batches:
                for name, variant in variants.items():
                    cost = measure(postgres, variant, batch, options.events)
                    costs.setdefault((name, batch), []).append(cost)
    print(f"| {'CPU µs per event: Postgres + client':<40} | " + " | ".join(f"{batch:>15}" for batch in options.batches) + " |")
    print("|---" * (len(options.batches) + 1) + "|")
    for name in variants:
        print(f"| {name:<40} | " + " | ".join(f"{_shown(costs[name, batch]):>15}" for batch in options.batches) + " |")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=3200, help="of each measurement")
    parser.add_argument("--batches", nargs="+", default=["1x1", "16x1", "64x1", "256x1", "1x64"])
    parser.add_argument("--variants", nargs="*", default=[], help="words of the names of variants")
    parser.add_argument("--rounds", type=int, default=5)
    return parser.parse_args()


def measure(postgres: Postgres, variant: Variant, batch: str, events: int) -> Cost:
    """Measure the commits of a variant after a tenth of the commits to warm up."""
    responses, each = map(int, batch.split("x"))
    commits = list(_commits(responses, each, events))
    warm = len(commits) // 10 + 1
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        _make(connection, variant)
        connection.execute("SET synchronous_commit TO off")
        for parts in commits[:warm]:
            variant.write(connection, parts)
        before, own = _cpu_ns(postgres.pid), time.process_time_ns()
        for parts in commits[warm:]:
            variant.write(connection, parts)
        own = time.process_time_ns() - own
        spent, count = _cpu_ns(postgres.pid) - before, (len(commits) - warm) * responses * each
        connection.execute("DROP TABLE event; DROP FUNCTION IF EXISTS contiguous")
    return Cost(spent / count / 1e3, own / count / 1e3)


def _make(connection: Connection, variant: Variant) -> None:
    connection.execute((TABLES[variant.table] + CHECKS[variant.check]).encode())
    # Otherwise the cost of a plan depends on when autovacuum has analysed the table.
    connection.execute("ALTER TABLE event SET (autovacuum_enabled = off)" if variant.table != "partitions" else "SELECT")


def _commits(responses: int, each: int, events: int) -> Iterator[Sequence[Part]]:
    """Yield commits with `each` events for each of `responses` responses; a response has 320 events."""
    chance, first, after, frames = random.Random(1), 1000, 0, _deltas()
    for _ in range(events // (responses * each)):
        if after + each > len(frames):
            first, after = first + responses, 0
        yield [
            Part(first + place, frames[after : after + each], TOKENS) for place in chance.sample(range(responses), responses)
        ]
        after += each


def _deltas() -> list[Frame]:
    """Make the deltas of a response, numbered from 0."""
    data = (
        b'{"type":"response.output_text.delta","sequence_number":%d,"item_id":"msg_68f0a1b2c3d4e5f60718293a4b5c6d7e","output_index":0,'
        b'"content_index":0,"delta":" \\"fox\\"","logprobs":[]}'
    )
    return [Frame(number, "response.output_text.delta", data % number, number * 20) for number in range(320)]


def _cpu_ns(postmaster: int) -> int:
    """CPU time of the postmaster and its child processes."""
    children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
    return sum(int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) for pid in [str(postmaster), *children])


def _shown(costs: Sequence[Cost]) -> str:
    # The least of the rounds: what else runs on the machine only adds.
    postgres, client = (min(values) for values in zip(*costs, strict=True))
    return f"{postgres:.1f} + {client:.1f}"


if __name__ == "__main__":
    main()
