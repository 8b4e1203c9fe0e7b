"""Races over one response, as often as it takes: its cancellation against its end, and two processes that follow it while it runs."""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path
from random import Random

import httpx2

from tests.chaos.case import ChaosCase
from tests.chaos.findings import Findings
from tests.chaos.load import cases
from tests.chaos.load.client import ChaosClient
from tests.chaos.load.http import HttpClient
from tests.chaos.options import ChaosOptions
from tests.chaos.proof import leftovers
from tests.chaos.proof.checks import Proof
from tests.chaos.system.processes import WebProcess
from tests.chaos.system.system import System
from tests.support import plain_http

AT_ONCE = 16
# More than AT_ONCE, so that no response waits.
BACKGROUND = 64


async def cancel(system: System, http: HttpClient, findings: Findings, count: int, seed: int) -> None:
    """Cancel responses just as they end, every other one through a process that does not run it; then check all."""
    chance, slots = Random(f"races {seed}"), asyncio.Semaphore(AT_ONCE)
    clients = [ChaosClient(cases.raced(number, chance), system, http, findings, seed) for number in range(count)]

    async def one(client: ChaosClient) -> None:
        async with slots:
            await client.run()

    await asyncio.gather(*map(one, clients))
    await Proof(system, http, findings, clients).run()
    findings.row("cancelled in time", findings.counts["ended cancelled"])


async def follow(system: System, findings: Findings, count: int) -> None:
    """Stream each live response through two processes, and again after the end; all four streams must have the same bytes."""
    headers = {"Authorization": f"Bearer {system.key}"}
    body = {"model": system.model, "input": "Tell me a long story.", "max_output_tokens": 40, "background": True}
    total = 0
    async with plain_http.async_client(headers=headers, timeout=60) as client:
        for number in range(count):
            first, second = system.webs[number % 2], system.webs[1 - number % 2]
            uid = (await client.post(f"{first.url}/v1/responses", json=body)).json()["id"]
            live = await asyncio.gather(_read(client, first, uid), _read(client, second, uid))
            answers = [await _read(client, web, uid) for web in (first, second)]
            total += len(live[0])
            if len({*live, *answers}) != 1 or b"event: response.incomplete" not in live[0]:
                findings.contradict(uid, "two processes stream it differently", seen=live[0][-200:], log=live[1][-200:])
    findings.row("followed through two processes", f"{count} responses, {total} bytes each way")


async def _read(client: httpx2.AsyncClient, web: WebProcess, uid: str) -> bytes:
    """Return all bytes of a stream but its comments."""
    url = f"{web.url}/v1/responses/{uid}?stream=true&include_obfuscation=false"
    async with client.stream("GET", url) as answer:
        blocks = (await answer.aread()).split(b"\n\n")
    return b"\n\n".join(block for block in blocks if not block.startswith(b":"))


async def race(options: argparse.Namespace, folder: Path, findings: Findings, _spare: frozenset[int]) -> None:
    """Start a system of two web processes and run both races."""
    system = System(ChaosOptions(engine="script", web=2, background=BACKGROUND, seed=options.seed), folder, findings)
    try:
        await system.start()
        http = HttpClient(system.key)
        await cancel(system, http, findings, options.cancels, options.seed)
        await follow(system, findings, options.follows)
        await leftovers.check_nothing_held(system, findings)
        await http.close()
    finally:
        await system.stop()
        await leftovers.check_connections_closed(system, findings)
        await system.stop_postgres()


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("--cancels", type=int, default=500, help="cancellations just at the end (default: %(default)s)")
    parser.add_argument("--follows", type=int, default=100, help="responses that two processes follow (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1)


CASE = ChaosCase("cancel responses at their end, and follow responses through two processes", declare, race)
