"""The processes of the system under test: web processes on ports of their own, and the engine's worker."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import psutil

from responses_app.installation.data_dir import ROOT
from tests.support.server.serve_command import free_port
from tests.support.waiting import WaitTimeout, wait_until

ENGINE_NAMES = ("VLLM::",)


class WebProcess:
    """Web process that can be restarted on the same port. `state`: down, starting, up, paused, stopping."""

    def __init__(self, name: str, folder: Path, environ: Mapping[str, str]) -> None:
        self.name, self.port = name, free_port()
        self.folder = folder / name
        self.log = folder / "logs" / f"{name}.log"
        self.state = "down"
        self.settled = 0  # Resident bytes when it had just started.
        # An installation of packages for code takes more CPU than the load.
        self._environ = {
            **os.environ,
            "RESPONSES_SANDBOX_PACKAGES": "off",
            **environ,
            "RESPONSES_DATA_DIR": str(self.folder),
        }
        self.command = [sys.executable, "-m", "responses_app.server.processes.main", "--port", str(self.port)]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Return the base URL."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """Return the id of the process that runs now, or ran last."""
        return self._process.pid if self._process else 0

    @property
    def code(self) -> int | None:
        """Return the exit code, None while the process runs."""
        return self._process.poll() if self._process else None

    @property
    def resident(self) -> int:
        """Return the resident bytes of memory."""
        return int(psutil.Process(self.pid).memory_info().rss)

    def start(self) -> None:
        """Start the process without waiting."""
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self.folder.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as out:
            self._process = subprocess.Popen(
                self.command,
                cwd=ROOT,
                env=self._environ,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        self.state = "starting"

    def send(self, number: signal.Signals) -> None:
        """Send a signal."""
        os.kill(self.pid, number)

    def end(self, limit: float) -> int | None:
        """Wait up to `limit` seconds for the exit code; None if the process still runs."""
        if self._process is None:
            return 0
        try:
            return self._process.wait(limit)
        except subprocess.TimeoutExpired:
            return None


class EngineProcess:
    """Engine worker: `manage.py engine`."""

    def __init__(self, model: str, folder: Path) -> None:
        self.model, self.folder, self.port = model, folder / "engine", free_port()
        self.log = folder / "logs" / "engine.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, limit: float = 600.0) -> str:
        """Start the worker, wait until ready, and return the engine URL. Raises RuntimeError."""
        self.log.parent.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, str(ROOT / "manage.py"), "engine", "--model", self.model, "--port", str(self.port)]
        environ = {**os.environ, "RESPONSES_DATA_DIR": str(self.folder), "VLLM_CPU_KVCACHE_SPACE": "1"}
        with self.log.open("ab") as out:
            self._process = subprocess.Popen(
                command, cwd=ROOT, env=environ, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
            )
        process = self._process
        with suppress(WaitTimeout):
            wait_until(lambda: self._urls() or process.poll() is not None, limit_s=limit, poll_s=0.2)
        if process.poll() is None and (urls := self._urls()):
            return urls[-1]
        raise RuntimeError("the engine did not come up:\n" + self.log.read_text(errors="replace")[-2000:])

    def _urls(self) -> list[str]:
        """Return the engine URLs that the worker has printed."""
        return [line for line in self.log.read_text(errors="replace").splitlines() if line.startswith("http://")]

    def victims(self) -> list[psutil.Process]:
        """Return the processes to kill: vLLM's server and its core, not their supervisor."""
        if self._process is None or self._process.poll() is not None:
            return []
        below = psutil.Process(self._process.pid).children(recursive=True)
        return [one for one in below if _about(one)]

    def stop(self, limit: float = 30.0) -> int | None:
        """Stop the worker; return the exit code, None if it had to be killed."""
        if self._process is None:
            return 0
        self._process.send_signal(signal.SIGTERM)
        try:
            return self._process.wait(limit)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            return None


def _about(process: psutil.Process) -> bool:
    try:
        line = " ".join(process.cmdline())
    except psutil.Error:
        return False
    return process.name().startswith(ENGINE_NAMES) or ("vllm" in line.lower() and "guard" not in line)
