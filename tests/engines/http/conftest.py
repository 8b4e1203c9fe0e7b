"""One `vllm serve` for all tests of the folder that need one."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from responses_app.engine_interface import EngineUnavailable
from responses_app.engines import open_engine
from responses_app.engines.http.client import HttpVllm
from tests.support.engines.vllm_server import serving
from tests.support.waiting import wait_until

# An idle machine needs 20 s. Beside the other engines that a run starts at once, slow processors needed 490 s.
START_LIMIT_S = 1200.0


@contextmanager
def connected(runner: asyncio.Runner, process: subprocess.Popen[bytes], url: str) -> Iterator[HttpVllm]:
    """Yield an engine connected to the server."""
    engine = open_engine(url)
    assert isinstance(engine, HttpVllm)

    def is_connected() -> bool:
        assert process.poll() is None, "vllm serve has ended"
        try:
            runner.run(engine.start())
        except EngineUnavailable:
            return False
        return True

    # Each attempt takes CPU time from the start.
    wait_until(is_connected, limit_s=START_LIMIT_S, poll_s=2)
    yield engine
    runner.run(engine.close())


@pytest.fixture(scope="package")
def vllm_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the file of the server's log."""
    return tmp_path_factory.mktemp("vllm") / "log"


@pytest.fixture(scope="package")
def server(seeing: Path, vllm_log: Path) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """Run the server. Return its process and its engine URL. The last test of `test_vllm_server.py` kills the server."""
    with serving(seeing, log=vllm_log) as (process, url):
        yield process, f"{url}?priority=1"


@pytest.fixture(scope="module")
def engine(runner: asyncio.Runner, server: tuple[subprocess.Popen[bytes], str]) -> Iterator[HttpVllm]:
    """Return a client of the server, which is ready."""
    with connected(runner, *server) as engine:
        yield engine
