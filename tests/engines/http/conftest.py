"""One `vllm serve` for all tests of the folder that need one."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from responses_app.engine_interface import EngineUnavailable
from responses_app.engines import open_engine
from responses_app.engines.http.client import HttpVllm
from tests.support.server.serve_command import free_port
from tests.support.waiting import wait_until

# An idle machine needs 20 s. Beside the other engines that a run starts at once, slow processors needed 490 s.
START_LIMIT_S = 1200.0
# The process starts an orphan guard and then becomes vLLM by exec: pid and start time, hence the mark, stay the same.
SERVER = """
import os, sys
from responses_app.engines import orphan_guard
orphan_guard.guard_children()
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""
QUIET = {
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "VLLM_LOGGING_LEVEL": "ERROR",
    # Inductor compiles 20 s for the first log-probabilities. A server of this project sets it too.
    "TORCH_COMPILE_DISABLE": "1",
}


@contextmanager
def serving(model: Path) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """Run a server of the checkpoint under the name `tiny`; yield the process and the engine URL."""
    port = str(free_port())
    vllm = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", str(model), "--served-model-name", "tiny"]
    options = ["--enforce-eager", "--enable-scale-out", "--enable-prompt-tokens-details", "--scheduling-policy", "priority"]
    # vLLM's own executor starts one more process, which spins while it waits, and dies of SIGILL where AMX is not asked for.
    options += ["--distributed-executor-backend", "responses_app.engines.vllm.executor.OneProcessExecutor"]
    command = [sys.executable, "-c", SERVER, *vllm[1:], *options, "--host", "127.0.0.1", "--port", port]
    process = subprocess.Popen(command, env=os.environ | QUIET, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    yield process, f"http://127.0.0.1:{port}?priority=1"
    process.kill()
    process.wait()


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
def server(seeing: Path) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """Run the server. Return its process and its engine URL. The last test of `test_vllm_server.py` kills the server."""
    with serving(seeing) as server:
        yield server


@pytest.fixture(scope="module")
def engine(runner: asyncio.Runner, server: tuple[subprocess.Popen[bytes], str]) -> Iterator[HttpVllm]:
    """Return a client of the server, which is ready."""
    with connected(runner, *server) as engine:
        yield engine
