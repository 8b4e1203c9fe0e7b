"""One process that we have started: whether it is ready, when it has ended, and how it is told to."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress

from responses_app.server.processes.process_tree import first_ended

# Says to the program whose child it is, so that it can ask the kernel to die with it (process.die_with_parent).
PARENT = "RESPONSES_PARENT"
KILL_LIMIT = 5.0


class ChildProcess:
    """Runs `command --ready N`, which writes one byte to descriptor N once it can be used. Made on a running loop."""

    def __init__(
        self,
        command: Sequence[str],
        environ: Mapping[str, str] | None = None,
        descriptors: Sequence[int] = (),
        *,
        mute: bool = False,
    ) -> None:
        hear, tell = os.pipe()
        try:
            self._process = subprocess.Popen(
                [*command, "--ready", str(tell)],
                env={**os.environ, **(environ or {}), PARENT: str(os.getpid())},
                pass_fds=(*descriptors, tell),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL if mute else None,
            )
        finally:
            os.close(tell)
        self.pid = self._process.pid
        self.ready_at: float | None = None
        self.ready: asyncio.Task[bool] = asyncio.ensure_future(self._heard(hear))
        self.ended: asyncio.Task[int] = asyncio.ensure_future(self._wait())

    def send(self, number: signal.Signals) -> None:
        """A signal, unless it has ended."""
        if not self.ended.done():
            self._process.send_signal(number)

    async def stop(self, number: signal.Signals, limit: float) -> None:
        """Tell it to end, and kill it after the limit."""
        for signalled, patience in ((number, limit), (signal.SIGKILL, KILL_LIMIT)):
            self.send(signalled)
            await asyncio.wait({self.ended}, timeout=patience)
            if self.ended.done():
                return

    async def _wait(self) -> int:
        await first_ended([self.pid])
        return self._process.wait()

    async def _heard(self, descriptor: int) -> bool:
        """Whether it said that it is ready; False once it has ended or closed its end without a word."""
        loop = asyncio.get_running_loop()
        readable = asyncio.Event()
        loop.add_reader(descriptor, readable.set)
        try:
            await readable.wait()
            said = bool(os.read(descriptor, 1))
        finally:
            loop.remove_reader(descriptor)
            os.close(descriptor)
        self.ready_at = time.monotonic() if said else None
        return said


def say_ready(descriptor: int | None) -> None:
    """What the program does when it is ready."""
    if descriptor is not None:
        with suppress(OSError):  # Whoever has started us may be gone.
            os.write(descriptor, b"1")
        os.close(descriptor)
