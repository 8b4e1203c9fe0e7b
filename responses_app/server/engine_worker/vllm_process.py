"""Process of a vLLM server from start to failure."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from responses_app.engines.http.health import FailureDetector
from responses_app.engines.socket import server as socket_server
from responses_app.engines.socket.client import health
from responses_app.engines.vllm import server as vllm_server
from responses_app.engines.vllm.core_watch import AWAY_S
from responses_app.engines.vllm.socket_folder import PATH_LIMIT, PATH_VARIABLE
from responses_app.installation.data_dir import open_log
from responses_app.server.bootstrap.ports import reachable
from responses_app.server.engine_worker.spec import WorkerSpec
from responses_app.server.supervision.process_tree import command_line, descendants, describe_exit, first_ended

logger = logging.getLogger("responses.engine")

START_LIMIT = 3600.0  # Seconds; the start may download large weights.
START_POLL_S = 0.2
WATCH = 1.0
# Seconds after which a health check counts as failed; a busy server answers slowly.
ANSWER_LIMIT = 10.0
HUNG_LIMIT = 60.0


class VllmFailed(Exception):
    """Failure of a vLLM server. `hopeless` means that a restart would fail too."""

    def __init__(self, reason: str, hopeless: bool = False) -> None:
        super().__init__(reason)
        self.hopeless = hopeless


class VllmProcess:
    """Processes of a vLLM server. The caller ends remaining processes together with all other descendants."""

    def __init__(self, plan: WorkerSpec, folder: Path) -> None:
        self.plan = plan
        self.log = folder / "vllm.log"
        self._sockets = folder / "run"
        self._server: subprocess.Popen[bytes] | None = None
        self._is_core_away = False

    async def run(self, ready: Callable[[], None]) -> None:
        """Start the server, call `ready` when requests are accepted, and watch the server. Always raises VllmFailed."""
        server, self._is_core_away = self._start(), False
        await self._unless_ended([server.pid], self._until_ready())
        ready()
        # Any of these processes can die alone. Then nothing is generated, and vLLM reports the failure after seconds.
        cores = [pid for pid in descendants(server.pid) if command_line(pid).startswith("VLLM::")]
        await self._unless_ended([server.pid, *cores], self._while_well())

    def clean_up(self) -> None:
        """Remove files that killed processes of the server leave behind."""
        shutil.rmtree(self._sockets, ignore_errors=True)

    def _start(self) -> subprocess.Popen[bytes]:
        self.clean_up()
        environ = dict(os.environ)
        if len(os.fsencode(self._sockets)) <= PATH_LIMIT:
            self._sockets.mkdir(parents=True, mode=0o700)
            environ[PATH_VARIABLE] = str(self._sockets)
        environ.pop("VLLM_API_KEY", None)
        if self.plan.key:
            environ["VLLM_API_KEY"] = self.plan.key
        with os.fdopen(open_log(self.log, os.O_TRUNC), "wb") as out:
            # In a session of its own, so that Ctrl-C reaches the worker only.
            self._server = subprocess.Popen(
                self._command(), env=environ, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
            )
        return self._server

    def _command(self) -> list[str]:
        plan = self.plan
        if plan.socket is not None:
            return socket_server.command(plan.model, plan.socket, plan.options)
        return vllm_server.command(plan.model, plan.name, plan.host, plan.port, plan.options)

    async def _unless_ended(self, pids: list[int], work: Coroutine[Any, Any, None]) -> None:
        """Await `work`. Raises VllmFailed as soon as any process ends."""
        ended, working = asyncio.ensure_future(first_ended(pids)), asyncio.ensure_future(work)
        try:
            await asyncio.wait({ended, working}, return_when=asyncio.FIRST_COMPLETED)
            if ended.done():
                raise self._failure(ended.result())
            working.result()
        finally:
            for task in (ended, working):
                task.cancel()
            await asyncio.wait({ended, working})

    def _failure(self, pid: int) -> VllmFailed:
        if self._server is None or pid != self._server.pid:
            return VllmFailed("vLLM's core hung, and was killed" if self._is_core_away else "a process of vLLM's core has died")
        code = self._server.wait()
        return VllmFailed(f"the vLLM server {describe_exit(code)}", hopeless=code == vllm_server.EXIT_PERMANENT)

    async def _until_ready(self) -> None:
        began = time.monotonic()
        while await self._health() != 200:
            if time.monotonic() - began > START_LIMIT:
                raise VllmFailed(f"vLLM was not ready after {START_LIMIT:.0f} s")
            await asyncio.sleep(START_POLL_S)

    async def _while_well(self) -> None:
        """Check the server every WATCH seconds. Raises VllmFailed if the server is broken, or has not answered for HUNG_LIMIT seconds.

        The server itself kills a core that hangs.
        """
        detector, status = FailureDetector(1, HUNG_LIMIT), 0
        while not detector.is_dead:
            await asyncio.sleep(WATCH)
            status = await self._health()
            is_core_away = status == vllm_server.STATUS_CORE_AWAY
            detector.record(status < 500 or is_core_away if status else None)
            if status:
                self._log_change(is_core_away)
        raise VllmFailed(
            f"vLLM reports a failure (HTTP {status})" if status else f"vLLM has not answered for {HUNG_LIMIT:.0f} s"
        )

    def _log_change(self, is_core_away: bool) -> None:
        if is_core_away and not self._is_core_away:
            logger.warning("%s: vLLM's core has not answered for %.0f s", self.plan.name, AWAY_S)
        elif self._is_core_away and not is_core_away:
            logger.info("%s: vLLM's core answers again", self.plan.name)
        self._is_core_away = is_core_away

    async def _health(self) -> int:
        """Return the status of `GET /health`, or 0 without an answer. The health of a worker with a socket is shown as a status."""
        if self.plan.socket is not None:
            is_healthy = await health(self.plan.socket, ANSWER_LIMIT)
            return 0 if is_healthy is None else 200 if is_healthy else vllm_server.STATUS_CORE_AWAY
        try:
            async with asyncio.timeout(ANSWER_LIMIT):
                reader, writer = await asyncio.open_connection(reachable(self.plan.host), self.plan.port)
                try:
                    writer.write(b"GET /health HTTP/1.1\r\nHost: engine\r\nConnection: close\r\n\r\n")
                    line = await reader.readline()
                finally:
                    writer.close()
        except (OSError, TimeoutError):
            return 0
        words = line.split()
        return int(words[1]) if len(words) > 1 and words[1].isdigit() else 0
