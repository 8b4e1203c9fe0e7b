"""Two `vllm serve` of demo-chat behind vllm-router, and a server that knows the router alone."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import httpx2
import pytest

from bench.client_matrix import install
from responses_app.demo.build import build
from tests.support import plain_http
from tests.support.clients.drive import give_up
from tests.support.engines.routed import Routed
from tests.support.engines.vllm_server import serving
from tests.support.server.serve_command import Server, free_port
from tests.support.waiting import wait_until

REQUIREMENTS = Path(__file__).parent / "vllm_router" / "requirements.txt"
START_LIMIT_S = 600.0


@pytest.fixture(scope="module")
def routed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Routed]:
    """Start all, as docs/operations/engines.md says."""
    try:
        python = install.install_pip(REQUIREMENTS)
    except install.NotInstalled as reason:
        give_up(f"no vllm-router: {reason}", os.environ)
    folder = tmp_path_factory.mktemp("routed")
    model = build("demo-chat", folder)
    with serving(model, "demo-chat") as one, serving(model, "demo-chat") as other:
        for _, url in (one, other):
            wait_until(partial(_is_healthy, url), limit_s=START_LIMIT_S, poll_s=1)
        with _router(python, [one[1], other[1]]) as url, Server(folder / "server", "--engine", url) as server:
            yield Routed(server.ready(), (one, other))


@contextmanager
def _router(python: Path, engines: list[str]) -> Iterator[str]:
    """Run vllm-router, and yield its URL."""
    port = free_port()
    command = [str(python.parent / "vllm-router"), "--host", "127.0.0.1", "--port", str(port), "--worker-urls", *engines]
    command += ["--policy", "consistent_hash", "--prometheus-port", str(free_port())]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        url = f"http://127.0.0.1:{port}"
        wait_until(partial(_is_healthy, url), limit_s=START_LIMIT_S, poll_s=0.5)
        yield url
    finally:
        process.kill()
        process.wait()


def _is_healthy(url: str) -> bool:
    try:
        return plain_http.get(f"{url}/health", timeout=5).status_code == 200
    except httpx2.TransportError:
        return False
