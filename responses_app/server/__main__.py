"""Outer process of a server: starts the server in a separate session, and cleans up. For `bin/serve` it installs packages before.

Ctrl-C in a terminal signals every process of the foreground group. vLLM and Postgres would exit before running responses
end. Only the outer process receives the signal, and passes the signal on to the server. If the server is killed, the
outer process ends the remaining processes; if the outer process is killed, the orphan guard (engines/orphan_guard.py) does.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from types import FrameType

from responses_app.engines import orphan_guard
from responses_app.installation.data_dir import ROOT, InUse, UnusableFolder, data_dir, lock, note_end
from responses_app.server.bootstrap import install, installed, ports, process_limits
from responses_app.server.bootstrap.progress import Progress
from responses_app.server.cli.args import Options, is_bin_serve, parse
from responses_app.server.supervision import process_tree
from responses_app.utils.imports import SAFE_PATH
from responses_app.utils.json_output import json_output

EXPECTED = (
    InUse,
    UnusableFolder,
    ports.CannotListen,
    process_limits.LimitTooLow,
    install.InstallError,
    installed.OtherPackages,
)
END_LIMIT_S, END_POLL_S = 60.0, 0.1
# Received signals and the signals passed on: a closed terminal stops the server.
PASSED_ON = {
    signal.SIGINT: signal.SIGINT,
    signal.SIGTERM: signal.SIGTERM,
    signal.SIGHUP: signal.SIGTERM,
    signal.SIGUSR1: signal.SIGUSR1,
}


def main(argv: Sequence[str]) -> int:
    """Run until the server ends. Return the exit code."""
    process_limits.deny_writing_by_others()
    options = parse(argv)
    with json_output(1, 2):
        try:
            return _main(options, argv)
        except Exception:
            # Printed here, as the interpreter would print it after the context, not as JSON.
            traceback.print_exc()
            return 1


def _main(options: Options, argv: Sequence[str]) -> int:
    progress = Progress()
    os.environ["RESPONSES_DATA_DIR"] = str(data_dir())
    signal.signal(signal.SIGTERM, _leave)
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    try:
        return _serve(options, argv, progress)
    except EXPECTED as error:
        progress.line(f"serve: {error}")
        return 1
    except KeyboardInterrupt:
        progress.line("Interrupted; nothing is left running.")
        return 130


def _serve(options: Options, argv: Sequence[str], progress: Progress) -> int:
    process_limits.ensure_open_files()
    process_limits.ensure_processes()
    process_limits.ensure_address_space()
    held = _lock(progress)
    ports.check(options.host, options.port)
    orphan_guard.kill_orphans(data_dir())
    orphan_guard.guard_children(data_dir())
    process_tree.adopt_orphans()
    guards = frozenset(process_tree.descendants(os.getpid()))
    try:
        if is_bin_serve():
            install.ensure(data_dir() / "logs" / "install.log", progress)
        in_use = installed.hold_environment()
        installed.check_installed()
        return _run(argv, [held] if in_use is None else [held, in_use], progress)
    finally:
        process_tree.end_descendants(os.getpid(), spare=guards)


def _lock(progress: Progress) -> int:
    """Lock the data folder, up to END_LIMIT_S after a server that is ending. Raises InUse and UnusableFolder."""
    deadline, ending = time.monotonic() + END_LIMIT_S, ""
    while True:
        # Asked before the lock is tried: the last process of the other server may end in between.
        has_orphans = orphan_guard.has_orphans(data_dir())
        try:
            return lock(data_dir())
        except InUse as error:
            if str(error) != ending and (error.is_ending or has_orphans):
                ending = str(error)
                progress.line(f"Waiting up to {END_LIMIT_S:.0f} s for the end of another server in {data_dir()} ...")
            # A dying process has no mark any more and still holds the lock, so a server that was ending once still is.
            if str(error) != ending or time.monotonic() > deadline:
                raise
        time.sleep(END_POLL_S)


def _run(argv: Sequence[str], locks: Sequence[int], progress: Progress) -> int:
    """Start the server, pass signals on and wait. The server inherits the locks, which last until both processes end."""
    environ = {**os.environ, "RESPONSES_OUTER": str(os.getpid())}
    command = [sys.executable, *SAFE_PATH, "-m", "responses_app.server.processes.main", *argv]
    relay = SignalRelay(lambda: note_end(locks[0]))
    for number in PASSED_ON:
        signal.signal(number, relay.receive)
    child = subprocess.Popen(command, env=environ, pass_fds=locks, start_new_session=True, stdin=subprocess.DEVNULL)
    relay.connect(child.pid)
    child.returncode = process_tree.wait_for(child.pid)
    if child.returncode < 0:
        name = signal.Signals(-child.returncode).name
        progress.line(f"serve: the server was ended by {name}; what it had started is ended now.")
        return 128 - child.returncode
    return child.returncode


class SignalRelay:
    """Signal relay to the server; signals that arrive before the server has started are stored."""

    def __init__(self, before_end: Callable[[], None]) -> None:
        self.before_end = before_end
        self.pid = 0
        self.pending: list[signal.Signals] = []

    def receive(self, number: int, _frame: FrameType | None) -> None:
        """Pass a signal on, or store the signal until the server has started."""
        if number != signal.SIGUSR1:
            self.before_end()
        self.pending.append(PASSED_ON[signal.Signals(number)])
        self._pass()

    def connect(self, pid: int) -> None:
        """Set the process id of the server and pass stored signals on."""
        self.pid = pid
        self._pass()

    def _pass(self) -> None:
        while self.pid and self.pending:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, self.pending.pop(0))


def _leave(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    sys.exit(main(sys.argv[1:]))
