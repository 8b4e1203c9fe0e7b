"""Installation of the packages of containers beside the server: starts with the server, and ends with it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from responses_app.local.data_dir import ROOT
from responses_app.sandbox.installation import InstallationState
from responses_app.sandbox.launch import installer, packages


@contextmanager
def installing(folder: Path, *, wanted: bool) -> Iterator[None]:
    """Install the packages below the sandbox's folder in the background, unless they are there or not `wanted`."""
    if not wanted or packages.is_installed(folder):
        yield
        return
    # Before the first answer, so that no page and no call misses the installation.
    packages.write_state(folder, InstallationState("installing", time.time()))
    process = subprocess.Popen(
        [sys.executable, "-m", installer.__name__, str(folder)],
        stdin=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        start_new_session=True,
    )
    try:
        yield
    finally:
        # With pip, which is in the same session.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
