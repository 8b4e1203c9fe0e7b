"""Fault injection: the seed chooses the faults and their points in the load."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from random import Random

from tests.chaos.faults.takeovers import Takeovers
from tests.chaos.findings import Findings
from tests.chaos.options import ChaosOptions
from tests.chaos.system.database import OTHERS
from tests.chaos.system.moments import MOMENTS
from tests.chaos.system.processes import WebProcess
from tests.chaos.system.system import POLL_S, System
from tests.chaos.waits import NO_LIMIT, observe, pause
from tests.support.waiting import eventually

# When a process is killed: whenever it is, at one of the moments, or when it has just taken over from one that was killed.
WHEN = ("", "", "", *MOMENTS, "takeover")
MOMENT_S = 5.0
# Between the response at which a fault is due and the fault.
MAX_DELAY_S = 1.5
CLAIM_S = 10.0
# Behind a moment so long at most: within that the request is read, kept and answered.
JUST = 0.06
PAUSE_S = 8.0
BUSY_S = 3.0
STOP_LIMIT = 45.0
HEIR_POLL_S = 0.03
TOGETHER = 0.4
ENGINE_LIMIT = 600.0
# After an outage of all web processes or of Postgres, take-overs may still be late for this time.
RECOVERY_S = 5.0


def schedule(options: ChaosOptions) -> list[tuple[int, str]]:
    """Return the faults in order, each with the number of started responses at which the fault is due."""
    chance = Random(f"faults {options.seed}")
    kinds = {
        "kill": options.kills,
        "stop": options.stops,
        "pause": options.pauses,
        "engine": options.engine_kills,
        "cut": options.cuts,
        "restart": options.restarts,
        "blackout": options.blackouts,
    }
    first, last = min(3, options.responses), max(3, options.responses - 1)
    return sorted((chance.randint(first, last), kind) for kind, count in kinds.items() for _ in range(count))


class FaultInjector:
    """Fault injector: injects the scheduled faults in turn. The load calls `wait_until_due`, so that it does not run ahead."""

    def __init__(self, system: System, findings: Findings, takeovers: Takeovers) -> None:
        self._system, self._findings, self._takeovers = system, findings, takeovers
        self._chance = Random(f"victims {system.options.seed}")
        self._due = schedule(system.options)
        self._begun = 0
        self._news = asyncio.Condition()
        self._tasks: set[asyncio.Task[None]] = set()

    async def wait_until_due(self, number: int) -> None:
        """Wait until all faults are injected that are due before response `number`."""
        async with self._news:
            self._begun = max(self._begun, number)
            self._news.notify_all()
            await self._news.wait_for(lambda: not self._due or self._due[0][0] > number)

    async def run(self) -> None:
        """Inject all faults."""
        table: dict[str, Callable[[], Awaitable[None]]] = {
            "kill": self._kill,
            "stop": self._stop,
            "pause": self._pause,
            "engine": self._engine,
            "cut": self._cut,
            "restart": self._restart,
            "blackout": self._blackout,
        }
        while self._due:
            async with self._news:
                await self._news.wait_for(lambda: self._due[0][0] <= self._begun)
            await pause(self._chance.random() * MAX_DELAY_S)
            async with self._news:
                # The load may go on to the next fault: some faults wait for what it does.
                _, kind = self._due.pop(0)
                self._news.notify_all()
            await table[kind]()
            self._findings.count(f"fault: {kind}")
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _victim(self) -> WebProcess:
        """Choose a healthy web process, as soon as there are two; prefer a process that runs responses, for up to BUSY_S."""
        await self._system.wait_until_healthy(2)
        await pause(self._chance.random() * POLL_S)
        busy = await observe(self._busy, bool, limit_s=BUSY_S, poll_s=POLL_S / 2)
        return self._chance.choice(busy or self._system.healthy)

    async def _busy(self) -> list[WebProcess]:
        """Return the healthy web processes that run responses."""
        return [web for web in self._system.healthy if await self._system.database.held(web.pid)]

    async def _kill(self) -> None:
        when = self._chance.choice(WHEN)
        web = (await self._moment(when) if when in MOMENTS else None) or await self._victim()
        held = await self._ended(web)
        if when == "takeover" and (heir := await self._heir(held)) is not None:
            self._findings.count("killed twice, during the take-over")
            await self._ended(heir)

    async def _ended(self, *webs: WebProcess) -> list[tuple[int, str, int, int]]:
        """Kill the processes together and restart them; return the held leases."""
        for web in webs:
            web.state = "down"
            web.send(signal.SIGKILL)
        held: list[tuple[int, str, int, int]] = []
        for web in webs:
            web.end(5)
            held += await self._system.database.held(web.pid)
        self._takeovers.watch(held, "SIGKILL")
        for web in webs:
            self._system.restart_in_background(web)
        return held

    async def _moment(self, kind: str) -> WebProcess | None:
        """Wait for a moment and return its process; None if no moment comes, or if no other process is healthy."""
        await self._system.wait_until_healthy(2)
        web = await self._system.moments.wait(kind, MOMENT_S)
        await pause(self._chance.random() * JUST)
        if web not in self._system.healthy or len(self._system.healthy) < 2:
            return None
        self._findings.count(f"killed at the moment: {kind}")
        return web

    async def _heir(self, held: list[tuple[int, str, int, int]]) -> WebProcess | None:
        """Find the process that has taken over any of the leases `held`, if another healthy process is left."""
        if not held:
            return None

        async def heirs() -> list[WebProcess]:
            pids = await self._system.database.holders([pk for pk, *_ in held])
            healthy = self._system.healthy
            return [web for web in healthy if web.pid in pids and len(healthy) > 1]

        new_owners = await observe(heirs, bool, limit_s=CLAIM_S, poll_s=HEIR_POLL_S)
        return new_owners[0] if new_owners else None

    async def _blackout(self) -> None:
        """Kill all web processes."""
        await self._system.wait_until_healthy(1)
        self._takeovers.hindered = True
        await self._ended(*self._system.healthy)
        self._start_task(self._recovered())

    async def _stop(self) -> None:
        web = await self._victim()
        held = await self._system.database.held(web.pid)
        web.state = "stopping"
        web.send(signal.SIGTERM)
        self._start_task(self._stopped(web, held))

    async def _stopped(self, web: WebProcess, held: list[tuple[int, str, int, int]]) -> None:
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
        self._system.restart_in_background(web)

    async def _pause(self) -> None:
        web = await self._victim()
        web.state = "paused"
        web.send(signal.SIGSTOP)
        self._takeovers.watch(await self._system.database.held(web.pid), "SIGSTOP")
        self._start_task(self._paused(web))

    async def _paused(self, web: WebProcess) -> None:
        await pause(PAUSE_S)
        web.send(signal.SIGCONT)
        web.state = "up"

    async def _engine(self) -> None:
        """Kill the engine's core, its server or both; the supervisor restarts them."""
        await self._system.engine_up.wait()
        assert self._system.worker is not None
        victims = await asyncio.to_thread(self._system.worker.victims)
        self._system.engine_up.clear()
        count = self._chance.choice((1, len(victims)))
        for one in self._chance.sample(victims, min(count, len(victims))):
            with suppress(ProcessLookupError):
                os.kill(one.pid, signal.SIGKILL)
        self._start_task(self._revived())
        if self._chance.random() < TOGETHER and len(self._system.healthy) > 1:
            self._findings.count("killed together with the engine")
            await self._ended(self._chance.choice(self._system.healthy))

    async def _revived(self) -> None:
        """Wait until the engine generates again; its port may answer earlier, when only its core was killed."""
        began = time.monotonic()
        assert self._system.worker is not None
        port, died = self._system.worker.port, False

        async def is_back() -> bool:
            nonlocal died
            is_healthy = await _answers(port)
            died |= not is_healthy
            # A server that has lost its core admits it within seconds.
            return is_healthy and (died or time.monotonic() - began > 30)

        if not await observe(is_back, bool, limit_s=ENGINE_LIMIT, poll_s=POLL_S):
            self._findings.contradict("engine", f"is not back after {ENGINE_LIMIT:.0f} s")
        took = int((time.monotonic() - began) * 1000)
        self._findings.count("slowest engine, ms", max(0, took - self._findings.counts["slowest engine, ms"]))
        self._system.engine_up.set()

    async def _cut(self) -> None:
        """Terminate a connection of Postgres."""
        await self._system.database.query(
            f"SELECT pg_terminate_backend(pid) {OTHERS} ORDER BY md5(pid::text || %s) LIMIT 1", [str(self._chance.random())]
        )

    async def _restart(self) -> None:
        """Shut Postgres down at once and restart it; sometimes kill the engine before, or a web process with it.

        The owner of events that were visible and not on the disk writes them again: where no commit waits for the disk,
        the owner has to live.
        """
        self._takeovers.hindered = True
        if self._system.worker is not None and self._system.engine_up.is_set() and self._chance.random() < TOGETHER:
            self._findings.count("Postgres restarted while the engine was")
            await self._engine()
        os.kill(self._system.postgres.pid, signal.SIGQUIT)
        if self._system.options.durability == "disk" and len(self._system.healthy) > 1:
            self._findings.count("killed together with Postgres")
            await self._killed_blindly(self._chance.choice(self._system.healthy))
        await eventually(lambda: not self._system.postgres.running, limit_s=NO_LIMIT, poll_s=POLL_S)
        await asyncio.to_thread(self._system.postgres.start)
        self._start_task(self._recovered())

    async def _killed_blindly(self, web: WebProcess) -> None:
        """Kill a web process while the database cannot list the leases."""
        web.state = "down"
        web.send(signal.SIGKILL)
        await asyncio.to_thread(web.end, 5)
        self._system.restart_in_background(web)

    async def _recovered(self) -> None:
        await pause(RECOVERY_S)
        self._takeovers.hindered = False

    def _start_task(self, work: Awaitable[None]) -> None:
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
