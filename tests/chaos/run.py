"""A chaos test from beginning to end: start, load and faults, recovery, proof, stop."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

from tests.chaos.case import ChaosCase
from tests.chaos.faults.injector import FaultInjector
from tests.chaos.faults.takeovers import PROMISED, Takeovers, summary
from tests.chaos.findings import Findings
from tests.chaos.load import cases
from tests.chaos.load.client import ChaosClient
from tests.chaos.load.http import HttpClient
from tests.chaos.options import ChaosOptions, complete, declare
from tests.chaos.proof import leftovers
from tests.chaos.proof.checks import Proof
from tests.chaos.system.system import System
from tests.chaos.waits import pause

REPORT_EVERY_S = 10.0


class ChaosRun:
    """Chaos test of a whole system; `run` fills `findings`."""

    def __init__(self, options: ChaosOptions, folder: Path, findings: Findings, spare: frozenset[int]) -> None:
        self.options, self.findings = options, findings
        self._system = System(options, folder, self.findings)
        self._takeovers = Takeovers(self._system)
        self._injector = FaultInjector(self._system, self.findings, self._takeovers)
        self._clients: list[ChaosClient] = []
        self._done = 0
        self._began = time.monotonic()
        self._spare = spare

    async def run(self) -> None:
        """Run the whole test and stop every process, whatever happens."""
        try:
            async with asyncio.timeout(self.options.seconds):
                await self._run_all()
        except TimeoutError:
            self.findings.contradict("run", f"was not over after {self.options.seconds:.0f} s", seen=", ".join(self._open()))
        finally:
            await self._system.stop()
            await leftovers.check_connections_closed(self._system, self.findings)
            await self._system.stop_postgres()
            await leftovers.check_no_process_left(self.findings, self._spare)
            self._figures()

    async def _run_all(self) -> None:
        self._say("starting Postgres, the engine and the web processes")
        await self._system.start()
        self._say("all is up")
        self.findings.row("connections of Postgres at the beginning", await self._system.database.connections())
        http = HttpClient(self._system.key)
        reporting = asyncio.create_task(self._report_progress())
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._injector.run())
                group.create_task(self._load(http))
            self._say("the load is over, waiting for recovery")
            await self._system.wait_until_up()
            await leftovers.wait_until_ended(self._system, self.findings)
            await self._takeovers.over()
            self._say("reading every log")
            await Proof(self._system, http, self.findings, self._clients).run()
            await leftovers.check_nothing_held(self._system, self.findings)
        finally:
            reporting.cancel()
            await http.close()

    async def _load(self, http: HttpClient) -> None:
        slots = asyncio.Semaphore(self.options.at_once)
        async with asyncio.TaskGroup() as group:
            for case in cases.load(self.options.responses, self.options.seed):
                await slots.acquire()
                await self._injector.wait_until_due(case.number)
                client = ChaosClient(case, self._system, http, self.findings, self.options.seed)
                self._clients.append(client)
                group.create_task(self._run_client(client, slots))
        await self._injector.wait_until_due(self.options.responses)

    async def _run_client(self, client: ChaosClient, slots: asyncio.Semaphore) -> None:
        try:
            await client.run()
        finally:
            client.over = True
            self._done += 1
            slots.release()

    async def _report_progress(self) -> None:
        while True:
            await pause(REPORT_EVERY_S)
            faults = ", ".join(
                f"{name.removeprefix('fault: ')} {n}"
                for name, n in sorted(self.findings.counts.items())
                if name.startswith("fault: ")
            )
            states = " ".join(web.state for web in self._system.webs)
            still = self._open()
            unfinished_note = f"; left: {', '.join(still)}" if 0 < len(still) <= 3 else ""
            wrong = f", {len(self.findings.wrong)} CONTRADICTIONS" if self.findings.wrong else ""
            self._say(
                f"{self._done}/{self.options.responses} responses; {faults or 'no faults yet'}; web: {states}{unfinished_note}{wrong}"
            )

    def _open(self) -> list[str]:
        return [
            f"{client.case.number} {client.case.kind} {[one.uid for one in client.records]}"
            for client in self._clients
            if not client.over
        ][:8]

    def _figures(self) -> None:
        findings = self.findings
        leftovers.report_tracebacks(self._system, findings)
        for name, value in summary(self._takeovers.all):
            findings.row(name, value)
        late = [
            one for one in self._takeovers.all if one.how == "SIGKILL" and not one.hindered and (one.claimed or 1e9) > PROMISED
        ]
        findings.row(f"deaths that were not noticed within {PROMISED:.0f} s", len(late))
        findings.row("time", f"{time.monotonic() - self._began:.0f} s")

    def _say(self, text: str) -> None:
        sys.stdout.write(f"{time.monotonic() - self._began:6.0f} s  {text}\n")
        sys.stdout.flush()


async def run(options: ChaosOptions, folder: Path, findings: Findings, spare: frozenset[int]) -> None:
    """Run the chaos test."""
    await ChaosRun(options, folder, findings, spare).run()


CASE = ChaosCase("kill parts of a whole system at random moments", declare, run, complete)
