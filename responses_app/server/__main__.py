"""The outer process of `bin/serve`: installs, starts the server in a session of its own, and leaves nothing behind it.

Two processes, because Ctrl-C in a terminal goes to every process in its group: vLLM's and Postgres's would be gone before
the responses that they still work on had ended. Only this one hears it, and passes it on. If the server is killed, this
process ends what it left; if this one is killed, its guard (engines/orphan_guard.py) does.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from types import FrameType

from responses_app.engines import orphan_guard
from responses_app.local.data_dir import ROOT, InUse, data_dir, lock
from responses_app.server.bootstrap import install, ports
from responses_app.server.cli.args import Options, parse
from responses_app.server.cli.progress import Progress
from responses_app.server.processes import process_tree

EXPECTED = (InUse, ports.CannotListen, install.InstallError)
# What we are told, and what the server is told then: a closed terminal is a request to stop.
PASSED_ON = {
    signal.SIGINT: signal.SIGINT,
    signal.SIGTERM: signal.SIGTERM,
    signal.SIGHUP: signal.SIGTERM,
    signal.SIGUSR1: signal.SIGUSR1,
}


def main(argv: Sequence[str]) -> int:
    """Run to the end; the exit code."""
    options, progress = parse(argv), Progress()
    os.environ["RESPONSES_DATA_DIR"] = str(data_dir())
    signal.signal(signal.SIGTERM, _leave)
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    try:
        return _serve(options, argv, progress)
    except EXPECTED as error:
        progress.say(f"serve: {error}")
        return 1
    except KeyboardInterrupt:
        progress.say("Interrupted; nothing is left running.")
        return 130


def _serve(options: Options, argv: Sequence[str], progress: Progress) -> int:
    held = lock(data_dir())
    ports.check(options.host, options.port)
    orphan_guard.kill_orphans(data_dir())
    orphan_guard.guard_children(data_dir())
    process_tree.adopt_orphans()
    guards = frozenset(process_tree.descendants(os.getpid()))
    try:
        install.ensure(data_dir() / "logs" / "install.log", progress)
        return _run(argv, held, progress)
    finally:
        process_tree.end_descendants(os.getpid(), spare=guards)


def _run(argv: Sequence[str], held: int, progress: Progress) -> int:
    """Start the server, pass signals on, wait. It inherits the lock, so that the folder is ours until both have ended."""
    environ = {**os.environ, "RESPONSES_OUTER": str(os.getpid())}
    command = [sys.executable, "-m", "responses_app.server.processes.main", *argv]
    relay = SignalRelay()
    for number in PASSED_ON:
        signal.signal(number, relay.hear)
    child = subprocess.Popen(command, env=environ, pass_fds=(held,), start_new_session=True, stdin=subprocess.DEVNULL)
    relay.to(child.pid)
    child.returncode = process_tree.wait_for(child.pid)
    if child.returncode < 0:
        name = signal.Signals(-child.returncode).name
        progress.say(f"serve: the server was ended by {name}; what it had started is ended now.")
        return 128 - child.returncode
    return child.returncode


class SignalRelay:
    """Passes signals on to the server; those that come before it is there are kept for it."""

    def __init__(self) -> None:
        self.pid = 0
        self.kept: list[signal.Signals] = []

    def hear(self, number: int, _frame: FrameType | None) -> None:
        self.kept.append(PASSED_ON[signal.Signals(number)])
        self._pass()

    def to(self, pid: int) -> None:
        self.pid = pid
        self._pass()

    def _pass(self) -> None:
        while self.pid and self.kept:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, self.kept.pop(0))


def _leave(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    sys.exit(main(sys.argv[1:]))
