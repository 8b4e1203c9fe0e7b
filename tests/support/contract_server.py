"""A server with both demo models, started as a user would start it: real engines, real Postgres, a real port."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.suite import data_template
from tests.support.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]
KEY = "sk-contract-tests"
START_LIMIT = 480.0
STOP_LIMIT = 30.0


@dataclass(frozen=True, slots=True)
class Address:
    """Where the server listens, and the key it takes."""

    port: int
    key: str = KEY
    folder: Path = Path()

    @property
    def base(self) -> str:
        """The base URL for clients."""
        return f"http://127.0.0.1:{self.port}/v1"

    def key_of(self, project: str) -> str:
        """A new key of another project."""
        environ = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
        command = [sys.executable, str(ROOT / "manage.py"), "createkey", project]
        environ["RESPONSES_DATA_DIR"] = str(self.folder)
        return subprocess.run(command, env=environ, capture_output=True, text=True, check=True, timeout=60).stdout.strip()


@contextmanager
def demo_server(folder: Path) -> Iterator[Address]:
    """Run a server with both demo models and the demo tools, whose data and log are in `folder`."""
    port = _free_port()
    data_template.copy_to(folder / "data")
    env = {name: value for name, value in os.environ.items() if name not in {"DATABASE_URL", "RESPONSES_MODELS"}}
    env |= {"RESPONSES_DATA_DIR": str(folder / "data"), "RESPONSES_API_KEY": KEY, "RESPONSES_SANDBOX_PACKAGES": "off"}
    command = [
        sys.executable,
        "-m",
        "responses_app.server",
        "--port",
        str(port),
        "--model",
        "demo-chat",
        "--model",
        "demo-harmony",
        "--demo-tools",
    ]
    log = folder / "server.log"
    with log.open("wb") as out:
        process = subprocess.Popen(command, cwd=ROOT, env=env, stdout=out, stderr=out, stdin=subprocess.DEVNULL)
    try:
        _wait(process, port, log)
        yield Address(port, folder=folder / "data")
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(STOP_LIMIT)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    def end_of_log() -> str:
        return "the server did not start:\n" + log.read_text(errors="replace")[-4000:]

    def is_healthy() -> bool:
        assert process.poll() is None, end_of_log()
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=2) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    wait_until(is_healthy, limit_s=START_LIMIT, poll_s=0.3, explain=end_of_log)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
