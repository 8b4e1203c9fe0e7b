"""One `vllm serve` for all tests of the folder that need one."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from responses_app.engines.http.client import HttpVllm
from tests.support.engines.vllm_server import connected, serving


@pytest.fixture(scope="package")
def server(seeing: Path) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """Run the server. Return its process and its engine URL. The last test of `test_vllm_server.py` kills the server."""
    with serving(seeing) as server:
        yield server


@pytest.fixture(scope="module")
def engine(runner: asyncio.Runner, server: tuple[subprocess.Popen[bytes], str]) -> Iterator[HttpVllm]:
    """Return a client of the server, which is ready."""
    with connected(runner, *server) as engine:
        yield engine
