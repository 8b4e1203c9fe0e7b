"""One life of a vLLM server: started, waited for, watched, until it fails."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from responses_app.engines.vllm import server as vllm_server
from responses_app.local.data_dir import open_log
from responses_app.server.bootstrap.ports import reachable
from responses_app.server.engine_worker.spec import WorkerSpec
from responses_app.server.processes.process_tree import command_line, descendants, describe_exit, first_ended

START_LIMIT = 3600.0  # Large weights may have to be downloaded first.
LOOK = 0.2
WATCH = 1.0
# A busy server is slow to say that it is well; one that says nothing for so long is not.
ANSWER_LIMIT = 10.0
HUNG_LIMIT = 60.0
# A socket's address holds 107 bytes, and vLLM's sockets are named by a UUID.
SOCKETS_LIMIT = 107 - 37


class VllmFailed(Exception):
    """The server is of no use any more. `hopeless`: another one would not be either."""

    def __init__(self, reason: str, hopeless: bool = False) -> None:
        super().__init__(reason)
        self.hopeless = hopeless


class VllmProcess:
    """The processes of one vLLM server. Whoever makes it ends what is left of them, with all other descendants."""

    def __init__(self, plan: WorkerSpec, folder: Path) -> None:
        self.plan = plan
        self.log = folder / "vllm.log"
        self._sockets = folder / "run"
        self._server: subprocess.Popen[bytes] | None = None

    async def run(self, ready: Callable[[], None]) -> None:
        """Start it, call `ready` when it takes requests, and watch it. Never returns: raises Failed."""
        server = self._start()
        await self._unless_ended([server.pid], self._until_ready())
        ready()
        # Any of these can die while the others go on: nothing is generated then, and vLLM needs seconds to admit it.
        cores = [pid for pid in descendants(server.pid) if command_line(pid).startswith("VLLM::")]
        await self._unless_ended([server.pid, *cores], self._while_well())

    def clean_up(self) -> None:
        """Remove what its processes leave in the file system when they are killed."""
        shutil.rmtree(self._sockets, ignore_errors=True)

    def _start(self) -> subprocess.Popen[bytes]:
        self.clean_up()
        environ = dict(os.environ)
        if len(os.fsencode(self._sockets)) <= SOCKETS_LIMIT:
            self._sockets.mkdir(parents=True, mode=0o700)
            environ["VLLM_RPC_BASE_PATH"] = str(self._sockets)
        environ.pop("VLLM_API_KEY", None)
        if self.plan.key:
            environ["VLLM_API_KEY"] = self.plan.key
        command = vllm_server.command(self.plan.model, self.plan.name, self.plan.host, self.plan.port, self.plan.options)
        with os.fdopen(open_log(self.log, os.O_TRUNC), "wb") as out:
            # A session of its own: Ctrl-C is for us, and we decide when it ends.
            self._server = subprocess.Popen(
                command, env=environ, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
            )
        return self._server

    async def _unless_ended(self, pids: list[int], work: Coroutine[Any, Any, None]) -> None:
        """Do the work, or raise Failed as soon as one of the processes has ended."""
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
            return VllmFailed("a process of vLLM's core has died")
        code = self._server.wait()
        return VllmFailed(f"the vLLM server {describe_exit(code)}", hopeless=code == vllm_server.EXIT_PERMANENT)

    async def _until_ready(self) -> None:
        began = time.monotonic()
        while await self._health() != 200:
            if time.monotonic() - began > START_LIMIT:
                raise VllmFailed(f"vLLM was not ready after {START_LIMIT:.0f} s")
            await asyncio.sleep(LOOK)

    async def _while_well(self) -> None:
        """Ask how it is. Returns never: raises Failed when it says that it is broken, or nothing for too long."""
        heard = time.monotonic()
        while True:
            await asyncio.sleep(WATCH)
            status = await self._health()
            if status >= 500:
                raise VllmFailed(f"vLLM says that it is broken (HTTP {status})")
            if status:
                heard = time.monotonic()
            elif time.monotonic() - heard > HUNG_LIMIT:
                raise VllmFailed(f"vLLM has not answered for {HUNG_LIMIT:.0f} s")

    async def _health(self) -> int:
        """The status of `GET /health`; 0 if there was no answer."""
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
