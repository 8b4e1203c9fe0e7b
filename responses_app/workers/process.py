"""Worker process as seen by the pool: start, call, kill."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

from responses_app.workers import protocol
from responses_app.workers.limits import LimitExceeded, Limits, WallTimeExceeded, WorkerDied, WorkerFailed, WorkerNotStarted

ROOT = Path(__file__).resolve().parents[2]
START_LIMIT_S = 60.0
KILL_LIMIT_S = 10.0
# Environment variables passed to workers. Keys and passwords are not passed on. RESPONSES_OWNER is the mark of
# engines/orphan_guard.py.
ENVIRON = ("PATH", "LANG", "LC_ALL", "TZ", "HOME", "TMPDIR", "LD_LIBRARY_PATH", "RESPONSES_OWNER")

WrapCommand: TypeAlias = Callable[[Sequence[str]], Sequence[str]]


def worker_command(target: str, limits: Limits) -> list[str]:
    """Return the command that starts a worker process of this process."""
    return [sys.executable, "-P", "-m", "responses_app.workers.child", target, str(os.getpid()), str(limits.memory_bytes)]


class WorkerProcess:
    """Child process for calls of a single function. Create and call from the same thread; the thread must outlive the process.

    Raises WorkerNotStarted if the process cannot be created.
    """

    def __init__(self, target: str, limits: Limits, wrap_command: WrapCommand | None = None) -> None:
        self._limits = limits
        self._is_ready = self._is_killed = False
        ours, theirs = socket.socketpair()
        self._connection = ours
        try:
            with theirs:
                command: Sequence[str] = worker_command(target, limits)
                self._process = subprocess.Popen(
                    wrap_command(command) if wrap_command is not None else command,
                    stdin=theirs.fileno(),
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    env={**{name: os.environ[name] for name in ENVIRON if name in os.environ}, "PYTHONPATH": str(ROOT)},
                    # Ctrl-C must reach the server only, which ends its workers.
                    start_new_session=True,
                )
        except OSError as error:
            ours.close()
            raise WorkerNotStarted(f"A worker process did not start: {error}") from error

    def is_usable(self) -> bool:
        """Return True if the process can take another job. A killed process is not usable, even before the end."""
        return not self._is_killed and self._process.poll() is None

    def start(self) -> None:
        """Wait on first use until the process has imported the function. Raises WorkerFailed and WorkerNotStarted."""
        if self._is_ready:
            return
        try:
            kind, text = protocol.receive(self._connection, time.monotonic() + START_LIMIT_S)
        except OSError as error:
            self.kill()
            raise WorkerNotStarted(f"A worker process did not start ({type(error).__name__}).") from error
        if kind != protocol.READY:
            self.kill()
            raise WorkerFailed(text.decode(errors="replace"))
        self._is_ready = True

    def call(self, payload: bytes, cpu_s: int) -> bytes:
        """Return the result for the payload. Raises WorkerFailed, or LimitExceeded and WorkerDied after the end of the process."""
        deadline = time.monotonic() + self._limits.wall_s
        try:
            protocol.send(self._connection, cpu_s, payload, deadline)
            kind, reply = protocol.receive(self._connection, deadline)
        except TimeoutError:
            self.kill()
            raise WallTimeExceeded(f"more than {self._limits.wall_s:g} seconds") from None
        except OSError:
            raise self._end_error(cpu_s) from None
        if kind != protocol.RESULT:
            raise WorkerFailed(reply.decode(errors="replace"))
        return reply

    def kill(self) -> None:
        """Kill the process. Thread-safe."""
        self._is_killed = True
        self._process.kill()
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)

    def reap(self) -> int:
        """Wait for the end of the process and free the resources; return the exit code, or -signal."""
        code = self._process.wait(KILL_LIMIT_S)
        self._connection.close()
        return code

    def _end_error(self, cpu_s: int) -> LimitExceeded | WorkerDied:
        self.kill()
        code = self._process.wait(KILL_LIMIT_S)
        if code == -signal.SIGXCPU:
            return LimitExceeded(f"more than {cpu_s} seconds of computing time")
        return WorkerDied(f"A worker process ended with {signal.Signals(-code).name if code < 0 else code}.", max(-code, 0))
