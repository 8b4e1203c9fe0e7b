"""One server for all contract tests, started as a user would start it: real engines, real Postgres, a real port."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.contract_server import KEY, ROOT, Address

START_LIMIT = 480.0
STOP_LIMIT = 30.0


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Address]:
    """A server with both demo models."""
    folder = tmp_path_factory.mktemp("contract")
    port = _free_port()
    env = {name: value for name, value in os.environ.items() if name not in {"DATABASE_URL", "RESPONSES_MODELS"}}
    env |= {"RESPONSES_DATA_DIR": str(folder / "data"), "RESPONSES_API_KEY": KEY}
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
    began = time.monotonic()
    while time.monotonic() - began < START_LIMIT and process.poll() is None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=2) as answer:
                if answer.status == 200:
                    return
        except OSError:
            time.sleep(0.3)
    pytest.fail("the server did not come up:\n" + log.read_text(errors="replace")[-4000:])


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
