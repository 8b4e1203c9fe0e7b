"""Child process with a readiness notification, a future of the exit, and a bounded stop."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress

from responses_app.server.supervision.process_tree import first_ended

# Environment variable with the parent's process id, for `process_tree.die_with_parent`.
PARENT = "RESPONSES_PARENT"
KILL_LIMIT = 5.0


class ChildProcess:
    """Child process of `command --ready N`, which writes a byte to descriptor N when ready. Needs a running event loop.

    Raises OSError if the machine cannot start one more process.
    """

    def __init__(
        self,
        command: Sequence[str],
        environ: Mapping[str, str] | None = None,
        descriptors: Sequence[int] = (),
        *,
        mute: bool = False,
    ) -> None:
        read_end, write_end = os.pipe()
        try:
            self._process = subprocess.Popen(
                [*command, "--ready", str(write_end)],
                env={**os.environ, **(environ or {}), PARENT: str(os.getpid())},
                pass_fds=(*descriptors, write_end),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL if mute else None,
            )
        except OSError:
            os.close(read_end)
            raise
        finally:
            os.close(write_end)
        self.pid = self._process.pid
        self.ready_at: float | None = None
        self.ready: asyncio.Task[bool] = asyncio.ensure_future(self._wait_ready(read_end))
        self.ended: asyncio.Task[int] = asyncio.ensure_future(self._wait())

    def send(self, number: signal.Signals) -> None:
        """Send a signal unless the process has ended."""
        if not self.ended.done():
            self._process.send_signal(number)

    async def stop(self, number: signal.Signals, limit: float) -> None:
        """Send the signal `number`, and kill the process after `limit` seconds."""
        for signalled, patience in ((number, limit), (signal.SIGKILL, KILL_LIMIT)):
            self.send(signalled)
            await asyncio.wait({self.ended}, timeout=patience)
            if self.ended.done():
                return

    async def _wait(self) -> int:
        await first_ended([self.pid])
        return self._process.wait()

    async def _wait_ready(self, descriptor: int) -> bool:
        """Return True when the process reports readiness, False if the descriptor is closed before."""
        loop = asyncio.get_running_loop()
        readable = asyncio.Event()
        loop.add_reader(descriptor, readable.set)
        try:
            await readable.wait()
            is_ready = bool(os.read(descriptor, 1))
        finally:
            loop.remove_reader(descriptor)
            os.close(descriptor)
        self.ready_at = time.monotonic() if is_ready else None
        return is_ready


def notify_ready(descriptor: int | None) -> None:
    """Report readiness to the parent process."""
    if descriptor is not None:
        with suppress(OSError):  # The parent may have ended.
            os.write(descriptor, b"1")
        os.close(descriptor)
