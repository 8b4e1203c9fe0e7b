"""Commits from an event loop: in Django's thread, or on a connection of the loop, while the loop is idle or busy.

    python -m bench.rows.connections [--commits 300] [--busy 0 0.5] [--events 1 64]

`--busy 0.5` is a task that computes for half of each millisecond, as runs do that generate. Median and p99 are milliseconds from the
start of a commit until its task continues. CPU is microseconds of this process per commit, and is printed for an idle loop alone.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import uvloop

from bench.storage import database

if TYPE_CHECKING:
    from responses_app.store.log.records import Append

Commit: TypeAlias = Callable[[Sequence["Append"]], Awaitable[object]]
# Length of a turn of a busy loop, in seconds.
TURN_S = 0.001
DATA = (
    b'{"type":"response.output_text.delta","sequence_number":%d,"item_id":"msg_68f0a1b2c3d4e5f60718293a4b5c6d7e","output_index":0,'
    b'"content_index":0,"delta":" \\"fox\\"","logprobs":[]}'
)


class Figures(NamedTuple):
    """Measurement of a number of commits."""

    cpu_us: float
    median_ms: float
    p99_ms: float
    per_second: float


def main() -> None:
    """Measure both ways in turns, and print a line for each."""
    options = _options()
    with database():
        for busy in options.busy:
            for events in options.events:
                for in_thread in (True, False, True, False):
                    _print(busy, events, in_thread, uvloop.run(measure(options.commits, events, busy, in_thread=in_thread)))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--commits", type=int, default=300)
    parser.add_argument("--events", type=int, nargs="+", default=[1, 64], help="of each commit, of as many responses")
    parser.add_argument("--busy", type=float, nargs="+", default=[0.0, 0.5], help="shares of the time")
    return parser.parse_args()


def _print(busy: float, events: int, in_thread: bool, figures: Figures) -> None:
    way = "thread" if in_thread else "loop"
    cpu = "" if busy else f"CPU {figures.cpu_us:>5.0f} µs a commit, "
    print(
        f"busy {busy:.0%}, {events:>3} events, {way:<6}: {cpu}median {figures.median_ms:.2f} ms, p99 {figures.p99_ms:.2f} ms, "
        f"{figures.per_second:.0f} commits/s",
        flush=True,
    )


async def measure(commits: int, events: int, busy: float, *, in_thread: bool) -> Figures:
    """Measure `commits` commits with an event for each of `events` responses."""
    from asgiref.sync import sync_to_async

    from bench.support.logs import born
    from responses_app.models import Response
    from responses_app.store.log.group_commit import write
    from responses_app.store.log.records import Append, EventFrame, ResponseLog
    from responses_app.store.log.rows.event_connection import EventConnection

    rows = [
        Response(uid=f"resp_{time.monotonic_ns()}_{n}", project="bench", model="m", created_at=born()) for n in range(events)
    ]
    logs = [ResponseLog(row, []) for row in await Response.objects.abulk_create(rows)]
    connection = EventConnection()
    commit: Commit = sync_to_async(write) if in_thread else connection.commit
    other = asyncio.create_task(_occupy(busy))
    times, cpu, began = [], time.process_time(), time.perf_counter()
    for number in range(commits):
        frame = EventFrame(number, "response.output_text.delta", DATA % number, number)
        start = time.perf_counter()
        await commit([Append(log, [frame], tokens=b"\1\2\3\4") for log in logs])
        times.append(time.perf_counter() - start)
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    other.cancel()
    with suppress(asyncio.CancelledError):
        await other
    connection.close()
    p99 = statistics.quantiles(times, n=100)[-1]
    return Figures(1e6 * cpu / commits, 1e3 * statistics.median(times), 1e3 * p99, commits / seconds)


async def _occupy(share: float) -> None:
    """Compute for the given share of each TURN_S."""
    while share:
        until = time.perf_counter() + TURN_S * share
        while time.perf_counter() < until:
            sum(range(50))
        await asyncio.sleep(TURN_S * (1 - share))


if __name__ == "__main__":
    main()
