"""Process that installs the packages of containers in the background: `python -m … FOLDER PARENT`. Failures are tried again."""

from __future__ import annotations

import itertools
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType

from responses_app.sandbox import system
from responses_app.sandbox.installation import InstallationState
from responses_app.sandbox.launch import launcher, packages
from responses_app.sandbox.launch.problem import local_problem

logger = logging.getLogger("responses.sandbox")

FIRST_PAUSE_S, LONGEST_PAUSE_S = 10.0, 900.0
# Requests and the start of the server go first.
NICE = 10
WATCH_S = 0.5


def start(folder: Path) -> subprocess.Popen[bytes]:
    """Start the process for the packages below `folder`, in a new session. The process ends with the parent process. Raises OSError."""
    # Before the first answer of a server, so that no page and no call misses the installation.
    packages.write_state(folder, InstallationState("installing", time.time()))
    return subprocess.Popen(
        [sys.executable, "-P", "-m", __name__, str(folder), str(os.getpid())],
        stdin=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(launcher.ROOT)},
        start_new_session=True,
    )


def install(folder: Path, wait: Callable[[float], None] = time.sleep) -> None:
    """Install the packages below `folder`. After a failure, as on a full disk, the pauses double."""
    for number in itertools.count():
        try:
            packages.write_state(folder, InstallationState("installing", time.time()))
            packages.install(folder)
        except (packages.PackagesMissing, OSError) as error:
            pause = min(FIRST_PAUSE_S * 2**number, LONGEST_PAUSE_S)
            logger.warning("the packages of containers are not installed; next try in %d seconds: %s", pause, error)
            reason = error.step if isinstance(error, packages.PackagesMissing) else str(error)
            # The log has the reason.
            with suppress(OSError):
                write_failure(folder, reason, time.time() + pause)
            wait(pause)
        else:
            return


def write_failure(folder: Path, reason: str, retry_at: float = 0.0) -> None:
    """Write the state `failed`, so that no code waits. Raises OSError."""
    packages.write_state(folder, InstallationState("failed", time.time(), reason, retry_at))


def main(folder: str, parent: str) -> None:
    """Install the packages, until the parent process ends."""
    # Before the trial of the sandbox, which takes up to a minute on a busy machine.
    signal.signal(signal.SIGTERM, _end_session)
    system.end_with_parent(int(parent))
    threading.Thread(target=_watch, args=(int(parent),), daemon=True).start()
    run(Path(folder))


def run(folder: Path) -> None:
    """Install the packages if the machine can run the sandbox. Raises OSError."""
    os.nice(NICE)
    if problem := local_problem():
        write_failure(folder, problem)
        return
    install(folder)


def _watch(parent: int) -> None:
    """End this process when the parent has ended: the signal of the kernel may be blocked in this process."""
    while os.getppid() == parent:
        time.sleep(WATCH_S)
    _end_session()


def _end_session(_number: int = 0, _frame: FrameType | None = None) -> None:
    """End this process and pip, which is in the same session."""
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main(*sys.argv[1:])
