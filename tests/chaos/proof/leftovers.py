"""Checks that no lease, transaction, connection, process or memory is left behind."""

from __future__ import annotations

import os
import re
from collections import Counter
from pathlib import Path

from responses_app.engines import orphan_guard
from responses_app.server.supervision.process_tree import descendants
from tests.chaos.findings import Findings
from tests.chaos.system.system import System
from tests.chaos.waits import observe
from tests.support import plain_http

END_LIMIT = 120.0
GENERATING = re.compile(r"^vllm:num_requests_(?:running|waiting)\{[^}]*\} (\S+)$", re.MULTILINE)
# A web process has a pool of 16, one connection that listens, one that tells.
PER_WEB = 19
GROWTH = 150_000_000
GONE_LIMIT = 15.0
CLOSE_LIMIT = 5.0

HELD_BY = """
SELECT response.uid, lease.worker FROM responses_app_lease lease
JOIN responses_app_response response ON response.id = lease.response_id WHERE response.ended_at IS NOT NULL
"""


# Rows of responses that are gone: nothing else keeps them from being written behind a deletion.
ORPHANS = """
SELECT count(*) FROM responses_app_event event
WHERE NOT EXISTS (SELECT FROM responses_app_response response WHERE response.id = event.response_id)
"""


async def wait_until_ended(system: System, findings: Findings) -> None:
    """Check that every response ends within END_LIMIT."""
    for uid in await observe(system.database.running, _is_empty, limit_s=END_LIMIT, poll_s=0.5):
        findings.contradict(uid, f"has not ended {END_LIMIT:.0f} s after all was well again")


async def check_nothing_held(system: System, findings: Findings) -> None:
    """Check that ended responses hold no lease, no transaction, no connection, no engine request and no memory."""
    database = system.database
    for uid, worker in await database.query(HELD_BY):
        findings.contradict(uid, "has ended and is held", seen=worker)
    if orphans := (await database.query(ORPHANS))[0][0]:
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
    """Return the number of requests that vLLM runs or has queued."""
    async with plain_http.async_client(timeout=30) as client:
        text = (await client.get(f"http://127.0.0.1:{port}/metrics")).text
    return sum(int(float(value)) for value in GENERATING.findall(text))


async def check_connections_closed(system: System, findings: Findings) -> None:
    """Check that no connection is left after all web processes have ended."""
    if count := await observe(system.database.connections, _is_empty, limit_s=CLOSE_LIMIT, poll_s=0.1):
        findings.contradict("database", f"{count} connections of processes that have ended")


async def check_no_process_left(findings: Findings, spare: frozenset[int]) -> None:
    """Check that no process is left at the end; `spare` are the guards of the chaos test itself."""

    async def remaining() -> set[int]:
        return {*orphan_guard.survivors(os.getpid()), *descendants(os.getpid())} - spare - {os.getpid()}

    left = await observe(remaining, _is_empty, limit_s=GONE_LIMIT, poll_s=0.2)
    findings.row("processes left", len(left))
    for pid in left:
        findings.contradict(f"process {pid}", "is left", seen=_command(pid))


def _is_empty(rows: object) -> bool:
    return not rows


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return "?"


def report_tracebacks(system: System, findings: Findings) -> None:
    """Report tracebacks of the web processes by their last line, without its digits."""
    tracebacks: Counter[str] = Counter()
    for web in system.webs:
        within = False
        for line in web.log.read_text(errors="replace").splitlines():
            if line.startswith("Traceback"):
                within = True
            elif within and line and not line.startswith(" "):
                within = False
                tracebacks[re.sub(r"\d+", "#", line)[:120]] += 1
    for line, count in tracebacks.most_common(6):
        findings.row(f"traceback: {line}", count)
