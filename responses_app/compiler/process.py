"""The parent's side of one worker process: start it, give it a job, end it."""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import subprocess
import sys
from multiprocessing.connection import Connection
from pathlib import Path

from responses_app.compiler.jobs import MEMORY_BYTES, WALL_FACTOR, Job, Result

_PROGRAM = "responses_app.compiler.worker"
_ROOT = Path(__file__).parents[2]
START_LIMIT_S = 60.0
SEND_LIMIT_S = 10
# What vLLM puts into the environment for its own processes.
_NOT_INHERITED = ("LD_PRELOAD",)


class CannotStart(RuntimeError):
    """The worker process did not start; the message is its traceback."""


class Died(RuntimeError):
    """The worker process ended in the middle of a job; `number` is the signal that ended it, 0 for none."""

    def __init__(self, number: int) -> None:
        super().__init__(f"ended by signal {number}")
        self.number = number


class WorkerProcess:
    """One process, used by one thread. Raises CannotStart."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        # A process that was stopped reads nothing.
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", SEND_LIMIT_S, 0))
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", _PROGRAM, str(theirs.fileno()), str(os.getpid())],
                cwd=_ROOT,
                env={name: value for name, value in os.environ.items() if name not in _NOT_INHERITED},
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        self._connection = Connection(ours.detach())
        self.pid = self._process.pid
        self._wait_until_ready()

    def do(self, job: Job) -> Result:
        """Give it a job and wait for the result. Raises Died; then, as after a refusal that is not final, it has to be ended."""
        message = {"kind": job.kind, "text": job.text, "cpu_s": job.cpu_s}
        try:
            self._connection.send_bytes(json.dumps(message).encode())
            if not self._connection.poll(job.cpu_s * WALL_FACTOR):
                return Result(refusal=f"compiling it takes longer than {job.cpu_s * WALL_FACTOR} seconds", is_final=False)
            answer = json.loads(self._connection.recv_bytes())
        except (EOFError, OSError):
            return self._death(job)
        return Result(text=answer.get("text", ""), refusal=answer.get("refusal"))

    def is_alive(self) -> bool:
        """Whether it can be given another job."""
        return self._process.poll() is None

    def kill(self) -> None:
        """Kill it; whoever waits for a result gets Died. For any thread."""
        self._process.kill()

    def end(self) -> None:
        """Kill it, and wait until it has ended."""
        self._connection.close()
        self._process.kill()
        self._process.wait()

    def _death(self, job: Job) -> Result:
        """Why it ended. Raises Died unless a limit was the reason."""
        self._process.kill()
        number = -self._process.wait()
        if number == signal.SIGXCPU:
            return Result(refusal=f"compiling it takes more than {job.cpu_s} seconds of computing time")
        if number == signal.SIGABRT:
            return Result(refusal=f"compiling it takes more than {MEMORY_BYTES >> 20} MiB of memory")
        raise Died(max(number, 0))

    def _wait_until_ready(self) -> None:
        try:
            answer = json.loads(self._connection.recv_bytes()) if self._connection.poll(START_LIMIT_S) else {}
            if "ready" in answer:
                return
            reason = str(answer.get("failure", f"it was not ready within {START_LIMIT_S:.0f} seconds"))
        except (EOFError, OSError):
            reason = "it ended at once"
        self.end()
        raise CannotStart(reason)
