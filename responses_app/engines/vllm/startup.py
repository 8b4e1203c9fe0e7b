"""One start of vLLM: what touches the whole process happens in turn, the long wait for its core beside other starts."""

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
from responses_app.engines.vllm.args import NO_COMPILATION, load, starts_concurrently

LOOK_S = 0.1  # How often to look whether the core has been born, or the turn has come.
FORSAKE_S = 10.0  # For a start to give up that nobody waits for: at worst it is just importing torch.

# What vLLM puts into the environment for the core that it starts next. Other children, such as Postgres, must not inherit
# the OpenMP that it preloads, and the next core must not take what was meant for this one.
LENT = ("LD_PRELOAD", "LOCAL_WORLD_SIZE", "VLLM_SSM_CONV_STATE_LAYOUT", NO_COMPILATION[0])

# Of the process, not of a loop: it guards the environment, and modules that are imported for the first time.
_turn = threading.Lock()


class VllmStartup:
    """Begins at once. Whoever made it waits for `llm`; if that brought nothing, it has to call `end`."""

    def __init__(self, model: str, options: Mapping[str, str]) -> None:
        self._forsaken = False
        self._cores: set[BaseProcess] = set()
        self._work = asyncio.create_task(self._run(model, options), name=f"vllm start of {model}")

    async def llm(self) -> Any:
        """The running AsyncLLM. Cancelling this gives the start up. Raises EngineDown if it was given up, or what `load` raises."""
        try:
            llm = await asyncio.shield(self._work)
        except asyncio.CancelledError:
            self._forsaken = True
            raise
        if self._forsaken:
            raise EngineUnavailable("the start was given up")
        return llm

    async def end(self) -> Any:
        """Give it up. The AsyncLLM if that has come up all the same, to be shut down; else None."""
        self._forsaken = True
        await asyncio.wait({self._work}, timeout=FORSAKE_S)
        came_up = self._work.done() and not self._work.cancelled() and self._work.exception() is None
        return self._work.result() if came_up else None

    async def _run(self, model: str, options: Mapping[str, str]) -> Any:
        async with _my_turn():
            if self._forsaken:
                raise EngineUnavailable("the start was given up")
            others = set(active_children())
            # In a thread, as this takes its time and the server answers health checks meanwhile.
            loading = asyncio.ensure_future(asyncio.to_thread(load, model, options))
            with _environment_kept(LENT):
                while not loading.done() and not (self._cores and starts_concurrently(options)):
                    await asyncio.wait({loading}, timeout=LOOK_S)
                    self._cores |= set(active_children()) - others
                    self._kill_if_forsaken()
        while not loading.done():
            await asyncio.wait({loading}, timeout=LOOK_S)
            self._kill_if_forsaken()
        return loading.result()

    def _kill_if_forsaken(self) -> None:
        """A thread cannot be stopped, but this one gives up when its core is killed."""
        if self._forsaken:
            for core in filter(BaseProcess.is_alive, self._cores):
                _kill_tree(core)


@asynccontextmanager
async def _my_turn() -> AsyncIterator[None]:
    while not _turn.acquire(blocking=False):  # noqa: ASYNC110 - an asyncio.Lock would belong to one loop
        await asyncio.sleep(LOOK_S)
    try:
        yield
    finally:
        _turn.release()


@contextmanager
def _environment_kept(names: tuple[str, ...]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in names}
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def _kill_tree(core: BaseProcess) -> None:
    """The core with its workers, which would not notice its end. It is stopped first, so that it can start no more of them."""
    import psutil

    with suppress(psutil.NoSuchProcess):
        root = psutil.Process(core.pid)
        root.send_signal(signal.SIGSTOP)
        for process in [*root.children(recursive=True), root]:
            with suppress(psutil.NoSuchProcess):
                process.kill()
