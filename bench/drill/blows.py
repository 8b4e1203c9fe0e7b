"""What is done to the system, and when: all of it chosen by the seed, each at a certain point of the load."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from random import Random

from bench.drill.database import OTHERS
from bench.drill.findings import Findings
from bench.drill.options import Options
from bench.drill.parts import Web
from bench.drill.system import LOOK, System
from bench.drill.takeovers import Takeovers

PAUSE_S = 8.0
BUSY_S = 3.0
STOP_LIMIT = 45.0
ENGINE_LIMIT = 600.0


def schedule(options: Options) -> list[tuple[int, str]]:
    """When something is done, counted in responses that have begun, and what."""
    chance = Random(f"blows {options.seed}")
    kinds = {
        "kill": options.kills,
        "stop": options.stops,
        "pause": options.pauses,
        "engine": options.engine_kills,
        "cut": options.cuts,
        "restart": options.restarts,
    }
    first, last = min(3, options.responses), max(3, options.responses - 1)
    return sorted((chance.randint(first, last), kind) for kind, count in kinds.items() for _ in range(count))


class Blows:
    """Does them one after the other. The load asks `passed`, so that it does not run ahead."""

    def __init__(self, system: System, findings: Findings, takeovers: Takeovers) -> None:
        self._system, self._findings, self._takeovers = system, findings, takeovers
        self._chance = Random(f"victims {system.options.seed}")
        self._due = schedule(system.options)
        self._begun = 0
        self._news = asyncio.Condition()
        self._tasks: set[asyncio.Task[None]] = set()

    async def passed(self, number: int) -> None:
        """A response is about to begin: wait until all is done that is due before it."""
        async with self._news:
            self._begun = max(self._begun, number)
            self._news.notify_all()
            await self._news.wait_for(lambda: not self._due or self._due[0][0] > number)

    async def strike(self) -> None:
        """Until all is done."""
        table: dict[str, Callable[[], Awaitable[None]]] = {
            "kill": self._kill,
            "stop": self._stop,
            "pause": self._pause,
            "engine": self._engine,
            "cut": self._cut,
            "restart": self._restart,
        }
        while self._due:
            async with self._news:
                await self._news.wait_for(lambda: self._due[0][0] <= self._begun)
            await asyncio.sleep(self._chance.random() * 1.5)
            kind = self._due[0][1]
            await table[kind]()
            self._findings.count(f"blow: {kind}")
            async with self._news:
                self._due.pop(0)
                self._news.notify_all()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _victim(self) -> Web:
        """One of those that are well, as soon as another one is too; if that does not take long, one that has something to lose."""
        while len(self._system.well) < 2:
            await asyncio.sleep(LOOK)
        busy: list[Web] = []
        until = time.monotonic() + BUSY_S
        while not busy and time.monotonic() < until:
            await asyncio.sleep(self._chance.random() * LOOK)
            busy = [web for web in self._system.well if await self._system.database.held(web.pid)]
        return self._chance.choice(busy or self._system.well)

    async def _kill(self) -> None:
        web = await self._victim()
        web.state = "down"
        web.send(signal.SIGKILL)
        web.end(5)
        self._takeovers.watch(await self._system.database.held(web.pid), "SIGKILL")
        self._system.bring_back(web)

    async def _stop(self) -> None:
        web = await self._victim()
        held = await self._system.database.held(web.pid)
        web.state = "stopping"
        web.send(signal.SIGTERM)
        self._own(self._stopped(web, held))

    async def _stopped(self, web: Web, held: list[tuple[int, str, int, int]]) -> None:
        began = time.monotonic()
        code = await asyncio.to_thread(web.end, STOP_LIMIT)
        if code is None:
            self._findings.contradict(web.name, f"has not ended {STOP_LIMIT:.0f} s after SIGTERM")
            web.send(signal.SIGKILL)
            web.end(5)
        elif code:
            self._findings.contradict(web.name, f"ended with {code} after SIGTERM")
        self._findings.count(
            "slowest stop, ms", max(0, int((time.monotonic() - began) * 1000) - self._findings.counts["slowest stop, ms"])
        )
        self._takeovers.watch(held, "SIGTERM")
        self._system.bring_back(web)

    async def _pause(self) -> None:
        web = await self._victim()
        web.state = "paused"
        web.send(signal.SIGSTOP)
        self._takeovers.watch(await self._system.database.held(web.pid), "SIGSTOP")
        self._own(self._paused(web))

    async def _paused(self, web: Web) -> None:
        await asyncio.sleep(PAUSE_S)
        web.send(signal.SIGCONT)
        web.state = "up"

    async def _engine(self) -> None:
        """All of it, its core or its server; who supervises it starts it again."""
        await self._system.engine_up.wait()
        assert self._system.worker is not None
        victims = await asyncio.to_thread(self._system.worker.victims)
        self._system.engine_up.clear()
        count = self._chance.choice((1, len(victims)))
        for one in self._chance.sample(victims, min(count, len(victims))):
            with suppress(ProcessLookupError):
                os.kill(one.pid, signal.SIGKILL)
        self._own(self._revived())

    async def _revived(self) -> None:
        """Wait until it generates again; its port answers before that, when only its core was killed."""
        began = time.monotonic()
        assert self._system.worker is not None
        port, died = self._system.worker.port, False
        while time.monotonic() - began < ENGINE_LIMIT:
            well = await _answers(port)
            died |= not well
            # A server that has lost its core admits it within seconds.
            if well and (died or time.monotonic() - began > 30):
                break
            await asyncio.sleep(LOOK)
        else:
            self._findings.contradict("engine", f"is not back after {ENGINE_LIMIT:.0f} s")
        took = int((time.monotonic() - began) * 1000)
        self._findings.count("slowest engine, ms", max(0, took - self._findings.counts["slowest engine, ms"]))
        self._system.engine_up.set()

    async def _cut(self) -> None:
        """One connection, whoever has it."""
        await self._system.database.ask(
            f"SELECT pg_terminate_backend(pid) {OTHERS} ORDER BY md5(pid::text || %s) LIMIT 1", [str(self._chance.random())]
        )

    async def _restart(self) -> None:
        """Postgres ends at once, as if its host had, and recovers."""
        self._takeovers.hindered = True
        pid = self._system.postgres.pid
        os.kill(pid, signal.SIGQUIT)
        while self._system.postgres.running:
            await asyncio.sleep(LOOK)
        await asyncio.to_thread(self._system.postgres.start)
        self._own(self._recovered())

    async def _recovered(self) -> None:
        await asyncio.sleep(5)
        self._takeovers.hindered = False

    def _own(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _answers(port: int) -> bool:
    try:
        async with asyncio.timeout(5):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                writer.write(b"GET /health HTTP/1.1\r\nHost: engine\r\nConnection: close\r\n\r\n")
                return b" 200" in await reader.readline()
            finally:
                writer.close()
    except (OSError, TimeoutError):
        return False
