"""One drill from beginning to end: start, load and blows, calm, proof, stop."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

from bench.drill import cases, leftovers
from bench.drill.blows import Blows
from bench.drill.client import Client
from bench.drill.findings import Findings
from bench.drill.http import Wire
from bench.drill.options import Options
from bench.drill.proof import Proof
from bench.drill.system import System
from bench.drill.takeovers import PROMISED, Takeovers, summary

TELL_EVERY = 10.0


class Drill:
    """`run` fills `findings`."""

    def __init__(self, options: Options, folder: Path, spare: frozenset[int]) -> None:
        self.options, self.findings = options, Findings()
        self._system = System(options, folder, self.findings)
        self._takeovers = Takeovers(self._system)
        self._blows = Blows(self._system, self.findings, self._takeovers)
        self._clients: list[Client] = []
        self._done = 0
        self._began = time.monotonic()
        self._spare = spare

    async def run(self) -> None:
        """All of it. Whatever happens, nothing is left running."""
        try:
            async with asyncio.timeout(self.options.seconds):
                await self._drilled()
        except TimeoutError:
            self.findings.contradict("drill", f"was not over after {self.options.seconds:.0f} s", seen=", ".join(self._open()))
        finally:
            await self._system.stop()
            await leftovers.hung_up(self._system, self.findings)
            await self._system.shut()
            await leftovers.gone(self.findings, self._spare)
            self._figures()

    async def _drilled(self) -> None:
        self._say("starting Postgres, the engine and the web processes")
        await self._system.start()
        self._say("all is up")
        self.findings.row("connections of Postgres at the beginning", await self._system.database.connections())
        wire = Wire(self._system.key)
        telling = asyncio.create_task(self._tell())
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._blows.strike())
                group.create_task(self._load(wire))
            self._say("the load is over, all is to be well again")
            await self._system.calm()
            await leftovers.ended(self._system, self.findings)
            await self._takeovers.over()
            self._say("reading every log")
            await Proof(self._system, wire, self.findings, self._clients).run()
            await leftovers.held(self._system, self.findings)
        finally:
            telling.cancel()
            await wire.close()

    async def _load(self, wire: Wire) -> None:
        room = asyncio.Semaphore(self.options.at_once)
        async with asyncio.TaskGroup() as group:
            for case in cases.load(self.options.responses, self.options.seed):
                await room.acquire()
                await self._blows.passed(case.number)
                client = Client(case, self._system, wire, self.findings, self.options.seed)
                self._clients.append(client)
                group.create_task(self._live(client, room))
        await self._blows.passed(self.options.responses)

    async def _live(self, client: Client, room: asyncio.Semaphore) -> None:
        try:
            await client.live()
        finally:
            client.over = True
            self._done += 1
            room.release()

    async def _tell(self) -> None:
        while True:
            await asyncio.sleep(TELL_EVERY)
            blows = ", ".join(
                f"{name[6:]} {n}" for name, n in sorted(self.findings.counts.items()) if name.startswith("blow: ")
            )
            states = " ".join(web.state for web in self._system.webs)
            still = self._open()
            rest = f"; left: {', '.join(still)}" if 0 < len(still) <= 3 else ""
            wrong = f", {len(self.findings.wrong)} CONTRADICTIONS" if self.findings.wrong else ""
            self._say(f"{self._done}/{self.options.responses} responses; {blows or 'no blows yet'}; web: {states}{rest}{wrong}")

    def _open(self) -> list[str]:
        return [
            f"{client.case.number} {client.case.kind} {[one.uid for one in client.told]}"
            for client in self._clients
            if not client.over
        ][:8]

    def _figures(self) -> None:
        findings = self.findings
        leftovers.complaints(self._system, findings)
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
