"""Supervisor of `bin/serve --worker` and `--web N`: engine workers, web processes and Postgres."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from responses_app.engine_interface import EngineUnavailable
from responses_app.engines.socket.client import SocketEngine
from responses_app.server.bootstrap import ports
from responses_app.server.bootstrap.database import close_connections, prepare, sign_in_link
from responses_app.server.bootstrap.errors import CannotStart
from responses_app.server.bootstrap.progress import Progress
from responses_app.server.cli.args import Options
from responses_app.server.cli.banner import banner, served
from responses_app.server.engine_worker import program
from responses_app.server.engine_worker.spec import WorkerSpec, plan_socket
from responses_app.server.postgres.cluster import SETTINGS, Postgres
from responses_app.server.postgres.watchdog import watch
from responses_app.server.processes import web_process
from responses_app.server.supervision.child import ChildProcess
from responses_app.server.supervision.supervised import SupervisedProcess
from responses_app.utils.imports import SAFE_PATH
from responses_app.utils.log_format import log_to_stderr

logger = logging.getLogger("responses.serve")

# Seconds that a web process needs beyond --drain to write queued events and stop.
WEB_GRACE = 25.0
WORKER_GRACE = 10.0
# New starts of a web process that was killed before all of these were ready: the first ones may serve already.
WEB_RESTARTS = 2
# Seconds that a starting web process waits for an engine, which may download weights.
ENGINE_WAIT = "3600"
# Database connections of a web process: its pool, and a few beside the pool.
CONNECTIONS = 21
# Postgres's default of superuser_reserved_connections; the server is no superuser.
RESERVED = 3


def settings_for(webs: int) -> dict[str, str]:
    """Return Postgres settings for `webs` web processes."""
    return {"max_connections": str(max(int(SETTINGS["max_connections"]), CONNECTIONS * (webs + 1) + RESERVED))}


def serve(options: Options, folder: Path, postgres: Postgres | None, progress: Progress) -> int:
    """Serve until stopped. Return the exit code. Raises CannotStart, PostgresError, CannotListen."""
    log_to_stderr()
    with ports.reserve(options.host, options.port) as listening:
        return asyncio.run(Supervisor(options, folder, postgres, progress, listening).run())


class Supervisor:
    """Supervisor: SIGINT and SIGTERM stop all processes, a second signal at once; SIGUSR1 restarts web processes in turn.

    After SIGTERM the web processes listen for RESPONSES_DRAIN_DELAY seconds more, in which load balancers see that these are not ready.
    """

    def __init__(
        self, options: Options, folder: Path, postgres: Postgres | None, progress: Progress, listening: socket.socket
    ) -> None:
        self.options, self.folder, self.progress = options, folder, progress
        self._postgres, self._listening = postgres, listening
        self._workers: list[SupervisedProcess] = []
        self._plans: dict[str, WorkerSpec] = {}
        self._webs: list[SupervisedProcess] = []
        self._tasks: set[asyncio.Task[Any]] = set()
        self._stopping = asyncio.Event()
        self._renewing = asyncio.Lock()
        self._code = 0
        self._delayed: asyncio.TimerHandle | None = None

    async def run(self) -> int:
        """Start, wait for a signal and stop. Return the exit code."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGHUP):
            loop.add_signal_handler(number, self.stop)
        loop.add_signal_handler(signal.SIGTERM, self._stop_later)
        loop.add_signal_handler(signal.SIGUSR1, self._renew)
        start, stopped = self._start_task(self._start()), self._start_task(self._stopping.wait())
        try:
            await asyncio.wait({start, stopped}, return_when=asyncio.FIRST_COMPLETED)
            if not start.done():
                # One web process may serve while another one still starts: for clients the server has started.
                return self._code if any(slot.child.ready_at is not None for slot in self._webs) else 130
            start.result()
            await stopped
            return self._code
        finally:
            self.progress.line("Stopping ...")
            await self._end()

    def stop(self) -> None:
        """Begin the shutdown; a second call ends the wait of web processes for responses."""
        if self._delayed is not None:
            self._delayed.cancel()
        if self._stopping.is_set():
            for slot in self._webs:
                slot.send(signal.SIGINT)
        self._stopping.set()

    def _stop_later(self) -> None:
        """Begin the shutdown after the delay, in which the web processes are not ready; any further signal ends the delay."""
        from django.conf import settings

        if self._delayed is not None or not self._webs or not settings.RESPONSES_DRAIN_DELAY:
            self.stop()
            return
        for slot in self._webs:
            slot.send(signal.SIGUSR1)
        logger.info("not ready any more; the port closes in %d s", settings.RESPONSES_DRAIN_DELAY)
        self._delayed = asyncio.get_running_loop().call_later(settings.RESPONSES_DRAIN_DELAY, self.stop)

    async def _start(self) -> None:
        """Start engines, database and web processes. Engines load while the database is prepared."""
        os.environ["RESPONSES_MODELS"] = " ".join(map(self._engine, os.environ["RESPONSES_MODELS"].split()))
        os.environ.setdefault("RESPONSES_ENGINE_START_WAIT", ENGINE_WAIT)
        key = await asyncio.to_thread(self._database)
        if self._postgres is not None:
            self._start_task(self._watch_postgres(self._postgres))
        self._webs = [self._web(number) for number in range(1, self.options.web + 1)]
        with self.progress.step(f"Starting the engine for {', '.join(served())}"):
            await self._all_up(self._workers)
        os.environ["RESPONSES_MODELS"] = " ".join([await self._known(one) for one in os.environ["RESPONSES_MODELS"].split()])
        with self.progress.step(f"Starting {_count(self.options.web)}"):
            await self._all_up(self._webs, WEB_RESTARTS)
        for slot in (*self._workers, *self._webs):
            self._start_task(slot.supervise())
        self.progress.line(await self._ready(key))

    async def _ready(self, key: str) -> str:
        """Return the banner. A sign-in link is made only for a terminal."""
        from responses_app.tools.sandbox_access import packages_note

        note = packages_note()
        if not self.progress.live:
            return banner(self.options, served(), note=note)
        return banner(self.options, served(), key, await asyncio.to_thread(self._way_in), note)

    def _engine(self, entry: str) -> str:
        """Return a model's RESPONSES_MODELS entry for web processes; start a worker for a `vllm://` engine."""
        if not entry.partition("=")[2].startswith("vllm:"):
            return entry
        made = plan_socket(entry, self.folder)
        self._plans[made.name] = made
        self._workers.append(
            SupervisedProcess(f"the engine worker of {made.name}", lambda: _worker(entry), signal.SIGTERM, WORKER_GRACE)
        )
        return f"{made.name}={made.url}"

    async def _known(self, entry: str) -> str:
        """Return a model's entry for later web processes, complete enough to start while the engine is away."""
        made = self._plans.get(entry.partition("=")[0])
        if made is None:
            return entry
        engine = SocketEngine(str(made.socket))
        try:
            await engine.start()
            return f"{entry}&max_model_len={engine.max_model_len}&start_wait=0"
        except EngineUnavailable:  # Web processes wait for the engine, as the first processes do.
            return entry
        finally:
            await engine.close()

    def _database(self) -> str:
        if self._postgres is not None:
            with self.progress.step("Starting Postgres"):
                self._postgres.start()
        try:
            return prepare(self.folder, self.progress)
        finally:
            close_connections()

    def _way_in(self) -> str:
        try:
            return sign_in_link()
        finally:
            close_connections()

    def _web(self, number: int) -> SupervisedProcess:
        descriptor = self._listening.fileno()
        command = web_process.command(number, descriptor, self.options.drain, self.folder / "logs" / f"web-{number}.log")
        return SupervisedProcess(
            f"web process {number}",
            lambda: ChildProcess(command, None, [descriptor]),
            signal.SIGINT,
            self.options.drain + WEB_GRACE,
        )

    async def _all_up(self, slots: list[SupervisedProcess], restarts: int = 0) -> None:
        """Wait until all processes are ready; start a killed one up to `restarts` times again. Raises CannotStart."""
        for up in asyncio.as_completed([slot.wait_ready(restarts) for slot in slots]):
            if not await up:
                raise CannotStart("a process did not start; its log explains why")

    def _renew(self) -> None:
        self._start_task(self._renew_all())

    async def _renew_all(self) -> None:
        """Replace web processes in turn, so that the other processes always serve."""
        if self._renewing.locked() or self._stopping.is_set():
            return
        async with self._renewing:
            for slot in self._webs:
                logger.info("restarting %s", slot.title)
                if not await slot.replace():
                    logger.error("a new %s did not start; the old one goes on, and so do the others", slot.title)
                    return
            logger.info("all web processes are new")

    async def _watch_postgres(self, postgres: Postgres) -> None:
        await watch(postgres)
        self._code = 1
        self.stop()

    async def _end(self) -> None:
        """Stop listening, then stop the web processes, then the engines."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        self._listening.close()
        for slots in (self._webs, self._workers):
            await asyncio.gather(*(slot.stop_all() for slot in slots))

    def _start_task(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _worker(entry: str) -> ChildProcess:
    name, _, source = entry.partition("=")
    return ChildProcess(
        [sys.executable, *SAFE_PATH, "-m", program.__name__, "--model", source, "--name", name, "--socket"], mute=True
    )


def _count(webs: int) -> str:
    return "the web process" if webs == 1 else f"{webs} web processes"
