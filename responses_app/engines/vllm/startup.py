"""Startup of vLLM: process-wide steps under a lock, then the wait for the core, beside further startups."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from multiprocessing import active_children
from multiprocessing.process import BaseProcess
from typing import Any

from responses_app.engine_interface import EngineUnavailable
from responses_app.engines.vllm.args import load, starts_concurrently
from responses_app.engines.vllm.inductor import NO_COMPILATION
from responses_app.engines.vllm.socket_folder import PATH_VARIABLE, SocketFolder

POLL_S = 0.1  # Polling interval for the core process and for the lock.
ABANDON_LIMIT_S = 10.0  # Time for an abandoned startup to end: in the worst case it is importing torch.

# Variables that vLLM sets for the core it starts next. They are restored afterwards: other children, such as Postgres, must not
# inherit the preloaded OpenMP, and the next core must not take the values of this core.
RESTORED_VARIABLES = ("LD_PRELOAD", "LOCAL_WORLD_SIZE", "VLLM_SSM_CONV_STATE_LAYOUT", NO_COMPILATION[0], PATH_VARIABLE)

# One lock per process, not per event loop: it guards the environment and first imports of modules.
_startup_lock = threading.Lock()


class VllmStartup:
    """Startup task of a vLLM engine, with its sockets in `folder`; starts on construction. Await `llm`; if that fails, call `end`."""

    def __init__(self, model: str, options: Mapping[str, str], folder: SocketFolder) -> None:
        self._folder = folder
        self._abandoned = False
        self.cores: set[BaseProcess] = set()
        self._work = asyncio.create_task(self._run(model, options), name=f"vllm start of {model}")

    async def llm(self) -> Any:
        """Return the running AsyncLLM. Cancelling abandons the startup. Raises EngineUnavailable if abandoned, or an error of `load`."""
        try:
            llm = await asyncio.shield(self._work)
        except asyncio.CancelledError:
            self._abandoned = True
            raise
        if self._abandoned:
            raise EngineUnavailable("the start was given up")
        return llm

    async def end(self) -> Any:
        """Abandon the startup. Return the AsyncLLM, to be shut down, if it has come up all the same; else None."""
        self._abandoned = True
        await asyncio.wait({self._work}, timeout=ABANDON_LIMIT_S)
        came_up = self._work.done() and not self._work.cancelled() and self._work.exception() is None
        return self._work.result() if came_up else None

    async def _run(self, model: str, options: Mapping[str, str]) -> Any:
        async with _hold_startup_lock():
            if self._abandoned:
                raise EngineUnavailable("the start was given up")
            earlier_children = set(active_children())
            # In a thread: loading blocks, and the server answers health checks meanwhile.
            loading = asyncio.ensure_future(asyncio.to_thread(load, model, options))
            with _restore_environment(RESTORED_VARIABLES):
                self._folder.make()
                while not loading.done() and not (self.cores and starts_concurrently(options)):
                    await asyncio.wait({loading}, timeout=POLL_S)
                    self.cores |= set(active_children()) - earlier_children
                    self._kill_if_abandoned()
        while not loading.done():
            await asyncio.wait({loading}, timeout=POLL_S)
            self._kill_if_abandoned()
        return loading.result()

    def _kill_if_abandoned(self) -> None:
        """Kill the core of an abandoned startup, so that the loading thread, which cannot be stopped, fails."""
        if self._abandoned:
            for core in filter(BaseProcess.is_alive, self.cores):
                kill_tree(core)


@asynccontextmanager
async def _hold_startup_lock() -> AsyncIterator[None]:
    while not _startup_lock.acquire(blocking=False):  # noqa: ASYNC110 - an asyncio.Lock would belong to one loop
        await asyncio.sleep(POLL_S)
    try:
        yield
    finally:
        _startup_lock.release()


@contextmanager
def _restore_environment(names: tuple[str, ...]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in names}
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def kill_tree(core: BaseProcess) -> None:
    """Kill the core and the workers, which ignore the end of the core. SIGSTOP first prevents the core from starting more workers."""
    import psutil

    with suppress(psutil.NoSuchProcess):
        root = psutil.Process(core.pid)
        root.send_signal(signal.SIGSTOP)
        for process in [*root.children(recursive=True), root]:
            with suppress(psutil.NoSuchProcess):
                process.kill()
