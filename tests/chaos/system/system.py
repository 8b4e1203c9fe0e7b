"""The system under test: one Postgres, one engine, some web processes on a single database, in a folder of their own."""

from __future__ import annotations

import asyncio
import secrets
import signal
import time
from pathlib import Path
from random import Random

import httpx2

from responses_app.server.postgres.cluster import Postgres
from tests.chaos.findings import Findings
from tests.chaos.load import tape
from tests.chaos.options import ChaosOptions
from tests.chaos.system.database import Database
from tests.chaos.system.moments import Moments
from tests.chaos.system.processes import EngineProcess, WebProcess
from tests.chaos.waits import NO_LIMIT, observe, pause
from tests.support import plain_http
from tests.support.suite import data_template
from tests.support.waiting import eventually

START_LIMIT = 600.0
STOP_LIMIT = 45.0
RESTART_PAUSE_S = 1.0
POLL_S = 0.1


class System:
    """System under test: call `start`, then `stop` in every case."""

    def __init__(self, options: ChaosOptions, folder: Path, findings: Findings) -> None:
        self.options, self.folder, self.findings = options, folder, findings
        self.key = f"sk-{secrets.token_hex(16)}"
        self.model = "m"
        self.postgres = Postgres(folder / "database")
        self.database = Database(self.postgres.url)
        self.worker: EngineProcess | None = None
        self.webs: list[WebProcess] = []
        self.engine_up = asyncio.Event()
        self.moments = Moments()
        self._rising: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Start all parts and wait until they are idle. Raises RuntimeError, PostgresError."""
        data_template.copy_to(self.postgres.data_dir)
        await asyncio.to_thread(self.postgres.start)
        url = await asyncio.to_thread(self._engine)
        self.engine_up.set()
        environ = {
            "DATABASE_URL": self.postgres.url,
            "RESPONSES_API_KEY": self.key,
            "SECRET_KEY": secrets.token_hex(32),
            "RESPONSES_MODELS": f"{self.model}={url}",
            **self.settings,
        }
        self.webs = [WebProcess(f"web-{number}", self.folder, environ) for number in range(1, self.options.web + 1)]
        # The first one makes the tables.
        await self.start_process(self.webs[0])
        await asyncio.gather(*(self.start_process(web) for web in self.webs[1:]))

    def _engine(self) -> str:
        if self.options.engine == "script":
            return f"script://{tape.record(self.folder / 'tape.jsonl')}?loop=1&tokenizer={harmony()}"
        self.worker = EngineProcess(f"{self.model}={self.options.engine}", self.folder)
        return self.worker.start()

    @property
    def settings(self) -> dict[str, str]:
        """Return the settings that differ from their defaults."""
        return {
            # On a busy machine vLLM needs minutes for a start, and web processes that start meanwhile wait for it.
            "RESPONSES_ENGINE_WAIT": "600",
            "RESPONSES_ENGINE_START_WAIT": "600",
            # Some background responses wait for their turn, and logs are sealed while faults are injected.
            "RESPONSES_MAX_BACKGROUND": str(self.options.background),
            "RESPONSES_SEAL_AFTER": "1",
            "RESPONSES_DURABILITY": self.options.durability,
        }

    @property
    def up(self) -> list[WebProcess]:
        """Return the web processes that take requests, or are stopped and look as if they did."""
        return [web for web in self.webs if web.state in ("up", "paused")]

    @property
    def healthy(self) -> list[WebProcess]:
        """Return the web processes that answer."""
        return [web for web in self.webs if web.state == "up"]

    async def pick_process(self, chance: Random, but: WebProcess | None = None) -> WebProcess:
        """Choose a web process that takes requests, another than `but` if possible; wait until there is one."""
        await eventually(lambda: self.up, limit_s=NO_LIMIT, poll_s=POLL_S)
        return chance.choice([web for web in self.up if web is not but] or self.up)

    async def wait_until_healthy(self, count: int) -> None:
        """Wait until at least `count` web processes answer."""
        await eventually(lambda: len(self.healthy) >= count, limit_s=NO_LIMIT, poll_s=POLL_S)

    async def start_process(self, web: WebProcess) -> None:
        """Start the process and wait until ready. Raises RuntimeError."""
        web.start()
        async with plain_http.async_client(timeout=5) as client:

            async def is_over() -> bool:
                if web.state != "starting":
                    return True
                try:
                    # The answer is 503 while the engine is away.
                    await client.get(f"{web.url}/health")
                except httpx2.HTTPError:
                    return web.code is not None
                web.state, web.settled = "up", web.resident
                return True

            await observe(is_over, bool, limit_s=START_LIMIT, poll_s=POLL_S)
        if web.state == "starting":
            raise RuntimeError(f"{web.name} did not start ({web.code}):\n{web.log.read_text(errors='replace')[-2000:]}")

    def restart_in_background(self, web: WebProcess) -> None:
        """Start an ended process again in the background."""
        task = asyncio.create_task(self._back(web))
        self._rising.add(task)
        task.add_done_callback(self._rising.discard)

    async def _back(self, web: WebProcess) -> None:
        for _ in range(3):
            try:
                return await self.start_process(web)
            except RuntimeError as error:
                # Without a database nobody starts; with one, everybody must.
                self.findings.count("starts that failed")
                last = str(error)
                await pause(RESTART_PAUSE_S)
        web.state = "down"
        self.findings.contradict(web.name, "does not start any more", seen=last)

    async def wait_until_up(self) -> None:
        """Wait until all parts are up."""
        if self._rising:
            await asyncio.wait(self._rising)
        changing = ("paused", "stopping", "starting")
        await eventually(lambda: not any(web.state in changing for web in self.webs), limit_s=NO_LIMIT, poll_s=POLL_S)
        await self.engine_up.wait()

    async def stop(self) -> None:
        """End all web processes in order, then the engine; Postgres runs until `stop_postgres`."""
        for task in self._rising:
            task.cancel()
        began = time.monotonic()
        for web in self.webs:
            if web.code is None and web.pid:
                web.send(signal.SIGCONT)
                web.send(signal.SIGTERM)
        codes = await asyncio.gather(*(asyncio.to_thread(web.end, STOP_LIMIT) for web in self.webs))
        for web, code, state in zip(self.webs, codes, [web.state for web in self.webs], strict=True):
            web.state = "down"
            if code is None:
                self.findings.contradict(web.name, f"has not ended {STOP_LIMIT:.0f} s after SIGTERM")
                web.send(signal.SIGKILL)
                web.end(5)
            elif code and state == "up":
                self.findings.contradict(web.name, f"ended with {code} after SIGTERM")
        self.findings.row("ordered stop of all web processes", f"{time.monotonic() - began:.1f} s")
        if self.worker is not None and await asyncio.to_thread(self.worker.stop) is None:
            self.findings.contradict("engine", "has not ended after SIGTERM")

    async def stop_postgres(self) -> None:
        """End Postgres."""
        await self.database.close()
        await asyncio.to_thread(self.postgres.stop)


def harmony() -> Path:
    """Return the folder of the Harmony tokenizer."""
    from responses_app.server.cli.model_specs import HARMONY

    return HARMONY
