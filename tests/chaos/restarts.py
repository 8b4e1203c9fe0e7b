"""`bin/serve` as its user starts it, killed under load, in part or as a whole, and started again on the same folder."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from random import Random

import psutil

from responses_app.installation.data_dir import ROOT
from responses_app.installation.database_url import default_url
from responses_app.server.supervision import process_tree
from tests.chaos.case import ChaosCase
from tests.chaos.findings import Findings
from tests.chaos.load import cases, tape
from tests.chaos.load.client import ChaosClient
from tests.chaos.load.http import HttpClient
from tests.chaos.options import DURABILITY, ChaosOptions
from tests.chaos.proof import leftovers
from tests.chaos.proof.checks import Proof
from tests.chaos.system.database import Database
from tests.chaos.system.processes import WebProcess
from tests.chaos.system.system import System, harmony
from tests.chaos.waits import observe, pause
from tests.support.suite import data_template

GONE_LIMIT = 30.0
POLL_S = 0.1
# For the supervisor to replace a part, and the load to go on.
REPLACEMENT_S = 4.0
AT_ONCE = 8
# Parts to kill: the outer process that passes signals on, the supervisor, a web process, the database, or all at once.
OUTER, INNER, WEB, POSTGRES, ALL = "bin/serve", "the supervisor", "a web process", "Postgres", "all of it at once"
PARTS = {
    INNER: "responses_app.server.processes.main",
    WEB: "responses_app.server.processes.web_process",
    POSTGRES: "/postgres -D",
}


class Serve(WebProcess):
    def __init__(self, folder: Path, environ: Mapping[str, str], webs: int) -> None:
        super().__init__("serve", folder, environ)
        # It has a Postgres of its own.
        self._environ.pop("DATABASE_URL", None)
        self.command = [str(ROOT / "bin" / "serve"), "--port", str(self.port), "--web", str(webs), "--drain", "1"]

    def part(self, name: str) -> list[int]:
        """Return the processes of that part, the oldest first."""
        below = process_tree.descendants(self.pid)
        return [pid for pid in below if PARTS[name] in process_tree.command_line(pid)]


class ServedSystem(System):
    """System under test that consists of a `bin/serve`."""

    async def start(self) -> None:
        """Start `bin/serve` and wait until ready. Raises RuntimeError."""
        line = f"script://{tape.record(self.folder / 'tape.jsonl')}?loop=1&tokenizer={harmony()}"
        environ = {"RESPONSES_API_KEY": self.key, "RESPONSES_MODELS": f"{self.model}={line}", **self.settings}
        self.webs = [Serve(self.folder, environ, self.options.web)]
        data_template.copy_to(self.webs[0].folder)
        self.engine_up.set()
        await self.start_process(self.webs[0])
        self.database = Database(default_url(self.webs[0].folder))


async def kill_parts(system: ServedSystem, findings: Findings, guards: frozenset[int], count: int, everything: bool) -> None:
    """Kill the parts in turn while responses are running."""
    chance = Random(f"restarts {system.options.seed}")
    (serve,) = system.webs
    assert isinstance(serve, Serve)
    kinds = [OUTER, INNER, WEB, POSTGRES, *([ALL] if everything else [])]
    for number in range(count):
        await pause(0.5 + chance.random() * 3)
        kind = kinds[number % len(kinds)]
        findings.count(f"killed: {kind}")
        if kind in (WEB, POSTGRES):
            # The supervisor starts it again, and a follower may see nothing but a pause.
            for pid in serve.part(kind)[:1]:
                os.kill(pid, signal.SIGKILL)
            await pause(REPLACEMENT_S)
            continue
        serve.state = "down"
        victims = {OUTER: [serve.pid], INNER: serve.part(INNER)[:1]}.get(kind) or [
            serve.pid,
            *process_tree.descendants(serve.pid),
        ]
        for pid in victims:
            # A process that dies with its parent may be gone by now.
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        await _gone(findings, guards, serve)
        await system.start_process(serve)


async def _gone(findings: Findings, guards: frozenset[int], serve: Serve) -> None:
    """Check twice that no process of `serve` is left: an orphan changes its parent and is easily overlooked."""
    empty = 0

    async def remaining() -> list[int]:
        nonlocal empty
        _reap(serve.pid)
        left = [pid for pid in process_tree.descendants(os.getpid()) if pid not in guards]
        empty = 0 if left or serve.code is None else empty + 1
        return left

    left = await observe(remaining, lambda _: empty == 2, limit_s=GONE_LIMIT, poll_s=POLL_S)
    if empty < 2:
        findings.contradict("serve", "is dead, and not all of it", seen=[process_tree.command_line(pid) for pid in left])


def _reap(spare: int) -> None:
    """Reap adopted orphans, as init would: Postgres takes a zombie to be alive."""
    for child in psutil.Process().children():
        with suppress(psutil.Error, ChildProcessError):
            if child.pid != spare and child.status() == psutil.STATUS_ZOMBIE:
                os.waitpid(child.pid, os.WNOHANG)


async def restart_under_load(options: argparse.Namespace, folder: Path, findings: Findings, guards: frozenset[int]) -> None:
    """Run load and faults until both are over, then the proof."""
    chosen = ChaosOptions(
        engine="script", web=options.web, seed=options.seed, responses=options.responses, durability=options.durability
    )
    system = ServedSystem(chosen, folder, findings)
    try:
        await system.start()
        http, slots = HttpClient(system.key), asyncio.Semaphore(AT_ONCE)
        clients = [
            ChaosClient(case, system, http, findings, options.seed) for case in cases.load(options.responses, options.seed)
        ]

        async def live(client: ChaosClient) -> None:
            async with slots:
                await client.run()

        await asyncio.gather(kill_parts(system, findings, guards, options.kills, options.all), *map(live, clients))
        await leftovers.wait_until_ended(system, findings)
        await Proof(system, http, findings, clients).run()
        await leftovers.check_nothing_held(system, findings)
        await http.close()
    finally:
        await system.stop()
        await system.stop_postgres()
        await leftovers.check_no_process_left(findings, guards)


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("--responses", type=int, default=150, help="how many are asked for (default: %(default)s)")
    parser.add_argument("--kills", type=int, default=20, help="how often something is killed (default: %(default)s)")
    parser.add_argument("--web", type=int, default=2, help="web processes (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--durability", choices=DURABILITY, default="visible", help="what commits wait for")
    parser.add_argument("--all", action="store_true", help="kill all of it at once, too: only with disk is nothing lost then")


CASE = ChaosCase("kill bin/serve, in part or as a whole, and start it again", declare, restart_under_load)
