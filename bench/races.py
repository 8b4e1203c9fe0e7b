"""Races over one response, as often as it takes: its cancellation against its end, and two processes that follow it while it runs."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from random import Random

import httpx2

from bench.drill import cases, leftovers
from bench.drill.client import Client
from bench.drill.findings import Findings
from bench.drill.http import Wire
from bench.drill.options import Options
from bench.drill.parts import Web
from bench.drill.proof import Proof
from bench.drill.system import System
from bench.drill.table import report
from responses_app.engines import orphan_guard
from responses_app.server.processes import process_tree

AT_ONCE = 16
# More than AT_ONCE, so that nothing waits for room.
BACKGROUND = 64


async def cancel(system: System, wire: Wire, findings: Findings, count: int, seed: int) -> None:
    """Each is cancelled just as it ends, every other one through a process that does not run it; then all are proven."""
    chance, room = Random(f"races {seed}"), asyncio.Semaphore(AT_ONCE)
    clients = [Client(cases.raced(number, chance), system, wire, findings, seed) for number in range(count)]

    async def one(client: Client) -> None:
        async with room:
            await client.live()

    await asyncio.gather(*map(one, clients))
    await Proof(system, wire, findings, clients).run()
    findings.row("cancelled in time", findings.counts["ended cancelled"])


async def follow(system: System, findings: Findings, count: int) -> None:
    """Two processes tell the same live response from its beginning, and again when it has ended: the same bytes four times."""
    headers = {"Authorization": f"Bearer {system.key}"}
    body = {"model": system.model, "input": "Tell me a long story.", "max_output_tokens": 40, "background": True}
    total = 0
    async with httpx2.AsyncClient(headers=headers, timeout=60) as client:
        for number in range(count):
            first, second = system.webs[number % 2], system.webs[1 - number % 2]
            uid = (await client.post(f"{first.url}/v1/responses", json=body)).json()["id"]
            live = await asyncio.gather(_told(client, first, uid), _told(client, second, uid))
            kept = [await _told(client, web, uid) for web in (first, second)]
            total += len(live[0])
            if len({*live, *kept}) != 1 or b"event: response.incomplete" not in live[0]:
                findings.contradict(uid, "two processes tell it differently", seen=live[0][-200:], log=live[1][-200:])
    findings.row("followed through two processes", f"{count} responses, {total} bytes each way")


async def _told(client: httpx2.AsyncClient, web: Web, uid: str) -> bytes:
    """All bytes of a stream but the comments, which tell that nothing is told."""
    url = f"{web.url}/v1/responses/{uid}?stream=true&include_obfuscation=false"
    async with client.stream("GET", url) as answer:
        blocks = (await answer.aread()).split(b"\n\n")
    return b"\n\n".join(block for block in blocks if not block.startswith(b":"))


async def race(options: argparse.Namespace, folder: Path, findings: Findings) -> None:
    """A system of two web processes, and all of it there."""
    system = System(Options(engine="script", web=2, background=BACKGROUND, seed=options.seed), folder, findings)
    try:
        await system.start()
        wire = Wire(system.key)
        await cancel(system, wire, findings, options.cancels, options.seed)
        await follow(system, findings, options.follows)
        await leftovers.held(system, findings)
        await wire.close()
    finally:
        await system.stop()
        await leftovers.hung_up(system, findings)
        await system.shut()


def main(argv: Sequence[str]) -> int:
    """`python -m bench.races`; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cancels", type=int, default=500, help="cancellations just at the end (default: %(default)s)")
    parser.add_argument("--follows", type=int, default=100, help="responses that two processes follow (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    options, findings = parser.parse_args(argv), Findings()
    with tempfile.TemporaryDirectory(prefix="races-") as name:
        orphan_guard.guard_children(name)
        process_tree.adopt_orphans()
        guards = frozenset(process_tree.descendants(os.getpid()))
        try:
            asyncio.run(race(options, Path(name), findings))
        finally:
            process_tree.end_descendants(os.getpid(), spare=guards)
    print(report(Options(engine="script", web=2, responses=options.cancels, seed=options.seed), findings))
    return 1 if findings.wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
