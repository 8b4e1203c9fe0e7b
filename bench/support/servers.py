"""Starts a server as a user would, waits until ready, and reads the CPU seconds of the processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parents[2]
START_LIMIT = 300.0
STOP_LIMIT = 30.0
# The installation of the sandbox's packages would occupy a processor during the first minute.
NO_PACKAGES = {"RESPONSES_SANDBOX_PACKAGES": "off"}
ENGINE_NAMES = ("VLLM::EngineCor", "VLLM::Worker")


class BenchServer:
    """Running server, which is charged with all processes of the process tree."""

    def __init__(self, process: subprocess.Popen[bytes], port: int) -> None:
        self.process, self.port = process, port

    def parts(self) -> dict[str, float]:
        """Return CPU seconds so far of `web` processes, `postgres`, the `engine` and, as `server`, all others."""
        used: dict[str, float] = {}
        for _, part, seconds in self._processes():
            used[part] = used.get(part, 0.0) + seconds
        return used

    def busiest_process(self) -> int:
        """Return the process id of the front end: outside the engine and Postgres the process with the most CPU time."""
        times = {pid: seconds for pid, part, seconds in self._processes() if part in ("web", "server")}
        return max(times, key=lambda pid: times[pid])

    def _processes(self) -> Iterator[tuple[int, str, float]]:
        parent = psutil.Process(self.process.pid)
        for process in (parent, *parent.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                times = process.cpu_times()
                yield process.pid, _part(process), times.user + times.system


def _part(process: psutil.Process) -> str:
    if process.name().startswith(ENGINE_NAMES):
        return "engine"
    if process.name() == "postgres":
        return "postgres"
    return "web" if "responses_app.server.processes.web_process" in process.cmdline() else "server"


@contextmanager
def serve(command: Sequence[str], port: int, env: dict[str, str], log: Path) -> Iterator[BenchServer]:
    """`command` until the block ends. Raises RuntimeError with the end of the log when it does not come up."""
    env = {**os.environ, **NO_PACKAGES, **env}
    with log.open("wb") as out:
        process = subprocess.Popen(command, cwd=ROOT, env=env, stdout=out, stderr=out, start_new_session=True)
        try:
            _wait(process, port, log)
            yield BenchServer(process, port)
        finally:
            _stop(process)


def end_on_sigterm() -> None:
    """Let SIGTERM raise SystemExit, so that the servers end with this process."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))


def python() -> str:
    """The interpreter that runs this."""
    return sys.executable


def _wait(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    began = time.monotonic()
    while time.monotonic() - began < START_LIMIT:
        if process.poll() is not None:
            break
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=2) as answer:
                if answer.status == 200:
                    return
        except OSError:
            time.sleep(0.5)
    raise RuntimeError("the server did not come up:\n" + "\n".join(log.read_text(errors="replace").splitlines()[-20:]))


def _stop(process: subprocess.Popen[bytes]) -> None:
    children = psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []
    process.send_signal(signal.SIGINT)
    try:
        process.wait(STOP_LIMIT)
    except subprocess.TimeoutExpired:
        process.kill()
    for child in children:
        if child.is_running():
            child.kill()
