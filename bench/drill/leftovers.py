"""What must not be left: leases, transactions, connections, memory, processes."""

from __future__ import annotations

import asyncio
import os
import re
from collections import Counter
from pathlib import Path

import httpx2

from bench.drill.findings import Findings
from bench.drill.system import System
from responses_app.engines import orphan_guard
from responses_app.server.processes.process_tree import descendants

END_LIMIT = 120.0
GENERATING = re.compile(r"^vllm:num_requests_(?:running|waiting)\{[^}]*\} (\S+)$", re.MULTILINE)
# A web process has a pool of 16, one connection that listens, one that tells.
PER_WEB = 19
GROWTH = 150_000_000
GONE_LIMIT = 15.0

HELD_BY = """
SELECT response.uid, lease.worker FROM responses_app_lease lease
JOIN responses_app_response response ON response.id = lease.response_id WHERE response.ended_at IS NOT NULL
"""


# Rows of responses that are gone: nothing else keeps them from being written behind a deletion.
ORPHANS = """
SELECT count(*) FROM responses_app_event event
WHERE NOT EXISTS (SELECT FROM responses_app_response response WHERE response.id = event.response_id)
"""


async def ended(system: System, findings: Findings) -> None:
    """Every response ends, in bounded time."""
    began = asyncio.get_running_loop().time()
    while (running := await system.database.running()) and asyncio.get_running_loop().time() - began < END_LIMIT:
        await asyncio.sleep(0.5)
    for uid in running:
        findings.contradict(uid, f"has not ended {END_LIMIT:.0f} s after all was well again")


async def held(system: System, findings: Findings) -> None:
    """Nothing of what has ended is held, in the database or in memory."""
    database = system.database
    for uid, worker in await database.ask(HELD_BY):
        findings.contradict(uid, "has ended and is held", seen=worker)
    if orphans := (await database.ask(ORPHANS))[0][0]:
        findings.contradict("database", f"{orphans} events of responses that were deleted")
    if stuck := await database.stuck():
        findings.contradict("database", f"{stuck} transactions are open and do nothing")
    count, most = await database.connections(), PER_WEB * system.options.web
    findings.row("connections of Postgres at the end", f"{count} (at most {most})")
    if count > most:
        findings.contradict("database", f"{count} connections, where {most} are all that could be")
    if system.worker is not None:
        busy = await _generating(system.worker.port)
        findings.row("requests that the engine works on at the end", busy)
        if busy:
            findings.contradict("engine", f"works on {busy} requests that nobody waits for")
    for web in system.up:
        grown = web.resident - web.settled
        findings.row(f"memory of {web.name}", f"{web.resident / 1e6:.0f} MB, {grown / 1e6:+.0f} MB since it started")
        if grown > GROWTH:
            findings.contradict(web.name, f"has grown by {grown / 1e6:.0f} MB")


async def _generating(port: int) -> int:
    """What vLLM says that it works on, or has queued."""
    async with httpx2.AsyncClient(timeout=30) as client:
        text = (await client.get(f"http://127.0.0.1:{port}/metrics")).text
    return sum(int(float(value)) for value in GENERATING.findall(text))


async def hung_up(system: System, findings: Findings) -> None:
    """When all web processes have ended nobody is connected."""
    for _ in range(50):
        if not (count := await system.database.connections()):
            return
        await asyncio.sleep(0.1)
    findings.contradict("database", f"{count} connections of processes that have ended")


async def gone(findings: Findings, spare: frozenset[int]) -> None:
    """When all has ended no process is left; `spare` is who watches over us."""
    deadline = asyncio.get_running_loop().time() + GONE_LIMIT
    while True:
        left = {*orphan_guard.survivors(os.getpid()), *descendants(os.getpid())} - spare - {os.getpid()}
        if not left or asyncio.get_running_loop().time() > deadline:
            break
        await asyncio.sleep(0.2)
    findings.row("processes left", len(left))
    for pid in left:
        findings.contradict(f"process {pid}", "is left", seen=_command(pid))


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return "?"


def complaints(system: System, findings: Findings) -> None:
    """What the web processes have complained of: tracebacks by their last line, without the figures in it."""
    found: Counter[str] = Counter()
    for web in system.webs:
        within = False
        for line in web.log.read_text(errors="replace").splitlines():
            if line.startswith("Traceback"):
                within = True
            elif within and line and not line.startswith(" "):
                within = False
                found[re.sub(r"\d+", "#", line)[:120]] += 1
    for line, count in found.most_common(6):
        findings.row(f"traceback: {line}", count)
