"""Installation of the packages of containers beside the server: starts with the server, and ends with it."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from responses_app.sandbox.installation import InstallationState
from responses_app.sandbox.launch import installer, packages
from responses_app.server.supervision.process_tree import describe_exit

logger = logging.getLogger("responses.sandbox")

STOPPED = "the server that installed these has stopped; the next start tries again"


@contextmanager
def installing(folder: Path, *, is_enabled: bool) -> Iterator[None]:
    """Install the packages below the sandbox's folder in the background, unless they are installed or `is_enabled` is false."""
    if not is_enabled or packages.is_installed(folder):
        yield
        return
    try:
        process = installer.start(folder)
    except OSError as error:
        logger.warning("the packages of containers cannot be installed: %s", error)
        yield
        return
    stopping = threading.Event()
    watching = threading.Thread(target=_watch, args=(process, folder, stopping), name="package installer", daemon=True)
    watching.start()
    try:
        yield
    finally:
        stopping.set()
        # With pip, which is in the same session.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        watching.join()
        process.wait()
        _write_end(folder, STOPPED)


def _watch(process: subprocess.Popen[bytes], folder: Path, stopping: threading.Event) -> None:
    """Name the end of a process that has crashed before `stopping`, so that no code waits for the packages."""
    # The process id stays in use until `process.wait`.
    end = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    if end is not None and end.si_status and not stopping.is_set():
        code = end.si_status if end.si_code == os.CLD_EXITED else -end.si_status
        _write_end(folder, f"the installation {describe_exit(code)}; the next start of the server tries again")


def _write_end(folder: Path, reason: str) -> None:
    """Write `reason` in place of a state that promises an end of the installation, or another try."""
    if packages.is_installed(folder) or not _is_pending(packages.read_state(folder)):
        return
    with suppress(OSError):
        installer.write_failure(folder, reason)


def _is_pending(state: InstallationState | None) -> bool:
    """Return whether `state` says that the installation goes on, or will be tried again."""
    return state is not None and (state.step == "installing" or state.retry_at > 0)
