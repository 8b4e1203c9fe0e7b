"""Starter of the sandbox's runner: listens on the socket, and starts the runner at the first connection and after the end.

After a start that fails, calls get the reason as their answer until the next start.
"""

from __future__ import annotations

import logging
import os
import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from responses_app.installation.data_dir import ROOT, make_folder
from responses_app.sandbox import runner_failure
from responses_app.sandbox.launch import launcher, packages
from responses_app.server.supervision.process_tree import describe_exit
from responses_app.utils import unix_socket

logger = logging.getLogger("responses.sandbox")

SOCKET = "sandbox.sock"
# Socket of the runner that reads files, and installs no packages before.
READER_SOCKET = "sandbox-reader.sock"
# Pause after the end of a runner. It doubles with each start in a row that fails.
RESTART_PAUSE_S = 1.0
LONGEST_PAUSE_S = 60.0
# Seconds in which a refused client takes the answer.
REFUSAL_LIMIT_S = 1.0
MAX_REASON = 300
STOP_LIMIT_S = 5.0
CHUNK = 65_536


def socket_url(data_dir: Path, name: str = SOCKET) -> str:
    """Return the URL of the runner that `started` starts on the socket `name`."""
    return f"unix:{data_dir / name}"


@contextmanager
def started(data_dir: Path, arguments: Sequence[str], name: str = SOCKET) -> Iterator[None]:
    """Start a runner when a client connects to the socket `name`. `arguments` go to the launcher. The runner ends with the context."""
    starter = _Starter(data_dir, arguments, name)
    thread = threading.Thread(target=starter.run, name="sandbox", daemon=True)
    thread.start()
    try:
        yield
    finally:
        starter.stop()
        thread.join(STOP_LIMIT_S)
        runner_failure.clear(data_dir / name)


class _Starter:
    """Listening socket and the process that serves the socket."""

    def __init__(self, data_dir: Path, arguments: Sequence[str], name: str) -> None:
        make_folder(data_dir)
        self._listening = unix_socket.listen(data_dir / name)
        self._command = [sys.executable, "-P", "-m", launcher.__name__, "--folder", str(data_dir / packages.FOLDER), *arguments]
        self._path = data_dir / name
        self._woken, self._wake = socket.socketpair()
        self._process: subprocess.Popen[bytes] | None = None
        self._changed = threading.Lock()
        self._is_stopped = False
        runner_failure.clear(self._path)

    def run(self) -> None:
        """Start the runner whenever a client connects and none runs."""
        failures = 0
        with self._listening, self._woken:
            while self._wait_connection():
                try:
                    reason = self._run_once()
                except OSError as error:
                    # No memory or no descriptors for one more process.
                    reason = f"the process of the runner cannot be started: {error}"
                if self._is_stopped:
                    return
                if reason is None:
                    failures = 0
                    select.select([self._woken], [], [], RESTART_PAUSE_S)
                else:
                    pause_s = min(RESTART_PAUSE_S * 2**failures, LONGEST_PAUSE_S)
                    failures += 1
                    logger.error("the sandbox does not start, so its calls fail for %.0f s: %s", pause_s, reason)
                    runner_failure.write(self._path, reason)
                    self._refuse_for(pause_s, runner_failure.refusal(reason))

    def stop(self) -> None:
        """End the runner and remove the socket."""
        with self._changed:
            self._is_stopped = True
            self._wake.close()
            if self._process is not None:
                self._process.kill()
        with suppress(FileNotFoundError):
            self._path.unlink()

    def _run_once(self) -> str | None:
        """Run a runner until it ends. Return why it has ended, or None if it was ready before."""
        ready, give_ready = os.pipe()
        errors, give_errors = os.pipe()
        with os.fdopen(ready, "rb"), os.fdopen(errors, "rb"):
            try:
                with self._changed:
                    if self._is_stopped:
                        return None
                    self._process = process = self._start(give_ready, give_errors)
            finally:
                os.close(give_ready)
                os.close(give_errors)
            output = _follow(errors, ready, lambda: runner_failure.clear(self._path))
        code = process.wait()
        if output is None:
            return None
        lines = output.decode(errors="replace").strip().splitlines()
        return lines[-1][:MAX_REASON] if lines else f"the runner {describe_exit(code)}"

    def _refuse_for(self, pause_s: float, answer: bytes) -> None:
        """Answer each connection with `answer`, for so many seconds or until `stop`."""
        end = time.monotonic() + pause_s
        while (left := end - time.monotonic()) > 0:
            ready, _, _ = select.select([self._listening, self._woken], [], [], left)
            if self._woken in ready:
                return
            if ready:
                with suppress(OSError):
                    self._refuse(answer)

    def _refuse(self, answer: bytes) -> None:
        connection, _ = self._listening.accept()
        end = time.monotonic() + REFUSAL_LIMIT_S
        with connection:
            connection.settimeout(REFUSAL_LIMIT_S)
            connection.sendall(answer)
            connection.shutdown(socket.SHUT_WR)
            # A client that still sends would lose the answer with the connection.
            while time.monotonic() < end and connection.recv(CHUNK):
                pass

    def _wait_connection(self) -> bool:
        """Wait for a connection. Return False after `stop`."""
        ready, _, _ = select.select([self._listening, self._woken], [], [])
        return self._woken not in ready

    def _start(self, ready: int, errors: int) -> subprocess.Popen[bytes]:
        descriptor = self._listening.fileno()
        return subprocess.Popen(
            [*self._command, "--socket", str(descriptor), "--ready", str(ready)],
            stdin=subprocess.DEVNULL,
            stderr=errors,
            pass_fds=[descriptor, ready],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            # Ctrl-C must reach the server only, which lets responses finish.
            start_new_session=True,
        )


def _follow(errors: int, ready: int, on_ready: Callable[[], None]) -> bytes | None:
    """Pass the output of a ready runner on until the end of `errors`. Return what a runner that was never ready has written, else None.

    A byte from `ready` means that the runner is ready.
    """
    buffer, watched, is_ready = b"", [errors, ready], False
    while errors in watched:
        readable, _, _ = select.select(watched, [], [])
        if ready in readable:
            watched.remove(ready)
            if os.read(ready, 1):
                is_ready = True
                on_ready()
                _pass_on(buffer)
        if errors in readable:
            text = os.read(errors, CHUNK)
            if not text:
                watched.remove(errors)
            elif is_ready:
                _pass_on(text)
            else:
                buffer = (buffer + text)[-CHUNK:]
    return None if is_ready else buffer


def _pass_on(text: bytes) -> None:
    sys.stderr.write(text.decode(errors="replace"))
    sys.stderr.flush()
