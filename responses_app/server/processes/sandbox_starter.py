"""Starter of the sandbox's runner: listens on the socket, and starts the runner at the first connection and after the end."""

from __future__ import annotations

import os
import select
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from responses_app.installation.data_dir import ROOT, make_folder
from responses_app.sandbox.launch import launcher, packages
from responses_app.utils import unix_socket

SOCKET = "sandbox.sock"
# Socket of the runner that reads files, and installs no packages before.
READER_SOCKET = "sandbox-reader.sock"
# Pause after the end of a runner, so that a runner that cannot start is not started all the time.
RESTART_PAUSE_S = 1.0
STOP_LIMIT_S = 5.0


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


class _Starter:
    """Listening socket and the process that serves the socket."""

    def __init__(self, data_dir: Path, arguments: Sequence[str], name: str) -> None:
        make_folder(data_dir)
        self._listening = unix_socket.listen(data_dir / name)
        self._command = [sys.executable, "-m", launcher.__name__, "--folder", str(data_dir / packages.FOLDER), *arguments]
        self._path = data_dir / name
        self._woken, self._wake = socket.socketpair()
        self._process: subprocess.Popen[bytes] | None = None
        self._changed = threading.Lock()
        self._is_stopped = False

    def run(self) -> None:
        """Start the runner whenever a client connects and none runs."""
        with self._listening, self._woken:
            while self._wait_connection():
                with self._changed:
                    if self._is_stopped:
                        return
                    self._process = self._start()
                self._process.wait()
                select.select([self._woken], [], [], RESTART_PAUSE_S)

    def stop(self) -> None:
        """End the runner and remove the socket."""
        with self._changed:
            self._is_stopped = True
            self._wake.close()
            if self._process is not None:
                self._process.kill()
        with suppress(FileNotFoundError):
            self._path.unlink()

    def _wait_connection(self) -> bool:
        """Wait for a connection. Return False after `stop`."""
        ready, _, _ = select.select([self._listening, self._woken], [], [])
        return self._woken not in ready

    def _start(self) -> subprocess.Popen[bytes]:
        descriptor = self._listening.fileno()
        return subprocess.Popen(
            [*self._command, "--socket", str(descriptor)],
            stdin=subprocess.DEVNULL,
            pass_fds=[descriptor],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            # Ctrl-C must reach the server only, which lets responses finish.
            start_new_session=True,
        )
