"""Memory, open files, threads and connections of a web process over thousands of responses."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from random import Random

import psutil

from responses_app.engines import orphan_guard
from responses_app.server.supervision import process_tree
from tests.chaos.findings import Findings
from tests.chaos.load.cases import Case, story
from tests.chaos.load.client import ChaosClient
from tests.chaos.load.http import HttpClient
from tests.chaos.options import ChaosOptions
from tests.chaos.system.system import System

AT_ONCE = 24
LOOKS = 10
# The logs of the last ones are sealed meanwhile.
SETTLE_S = 5.0


def cases(count: int, seed: int) -> list[Case]:
    """Draw short requests of every kind; some clients disconnect."""
    chance, drawn_cases = Random(seed), list[Case]()
    for number in range(count):
        body = story(chance, 16, 32)
        drawn_cases.append(
            (
                Case(number, "streamed", body),
                Case(number, "not streamed", body, "post"),
                Case(number, "polled", body, "poll"),
                Case(number, "resumed", body, "resume", leaves=5, tails=1),
                Case(number, "store: false", {**body, "store": False}),
                Case(number, "left", body, quits=6),
            )[number % 6]
        )
    return drawn_cases


async def measure(system: System, findings: Findings, count: int, seed: int) -> None:
    """Send the load in equal parts and measure after each part."""
    http, slots, step = HttpClient(system.key), asyncio.Semaphore(AT_ONCE), -(-count // LOOKS)
    todo = cases(count, seed)

    async def live(case: Case) -> None:
        async with slots:
            await ChaosClient(case, system, http, findings, seed).run()

    print(f"{'responses':>9} {'memory':>9} {'files':>6} {'threads':>8} {'connections':>12}")
    await _look(system, 0)
    for at in range(0, count, step):
        await asyncio.gather(*map(live, todo[at : at + step]))
        await asyncio.sleep(SETTLE_S)
        await _look(system, min(at + step, count))
    await http.close()


async def _look(system: System, done: int) -> None:
    one = psutil.Process(system.webs[0].pid)
    connections = await system.database.connections()
    print(
        f"{done:>9} {one.memory_info().rss / 1e6:>6.1f} MB {one.num_fds():>6} {one.num_threads():>8} {connections:>12}",
        flush=True,
    )


async def run(options: argparse.Namespace, folder: Path, findings: Findings) -> None:
    """Run a web process with a tape and nothing else."""
    system = System(ChaosOptions(engine="script", web=1, background=AT_ONCE), folder, findings)
    try:
        await system.start()
        await measure(system, findings, options.responses, options.seed)
    finally:
        await system.stop()
        await system.stop_postgres()


def main(argv: Sequence[str]) -> int:
    """`python -m bench.memory`; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--responses", type=int, default=2000, help="how many are asked for (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    options, findings = parser.parse_args(argv), Findings()
    with tempfile.TemporaryDirectory(prefix="memory-") as name:
        orphan_guard.guard_children(name)
        process_tree.adopt_orphans()
        guards = frozenset(process_tree.descendants(os.getpid()))
        try:
            asyncio.run(run(options, Path(name), findings))
        finally:
            process_tree.end_descendants(os.getpid(), spare=guards)
    for one in findings.wrong:
        print(one)
    return 1 if findings.wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
