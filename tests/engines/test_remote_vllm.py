"""A real `vllm serve`: what it does as all engines do, and the end of its processes with their owner."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from responses_app.engines import guard, open_engine
from responses_app.engines.border import EngineDown
from responses_app.engines.remote import Remote
from tests.engines import checkpoint
from tests.engines.demands import START_LIMIT_S, Demands, Running
from tests.engines.listening import ask, hear

pytestmark = [pytest.mark.engine, pytest.mark.timeout(START_LIMIT_S)]

# The server adopts its children and becomes vLLM: pid and start time, hence the mark, stay what they were.
SERVER = "import os, sys; from responses_app.engines import guard; guard.adopt(); os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
QUIET = {
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "VLLM_LOGGING_LEVEL": "ERROR",
}


@pytest.fixture(scope="module")
def server(tiny: Path) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    vllm = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", str(tiny), "--served-model-name", "tiny"]
    options = ["--enforce-eager", "--enable-scale-out", "--enable-prompt-tokens-details", "--scheduling-policy", "priority"]
    command = [sys.executable, "-c", SERVER, *vllm[1:], *options, "--host", "127.0.0.1", "--port", port]
    process = subprocess.Popen(command, env=os.environ | QUIET, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    yield process, f"http://127.0.0.1:{port}?priority=1"
    process.kill()
    process.wait()


@pytest.fixture(scope="module")
def engine(runner: asyncio.Runner, server: tuple[subprocess.Popen[bytes], str]) -> Iterator[Remote]:
    process, url = server
    engine = open_engine(url)
    assert isinstance(engine, Remote)
    while True:
        assert process.poll() is None, "vllm serve has ended"
        try:
            runner.run(engine.start())
            break
        except EngineDown:
            time.sleep(0.5)
    yield engine
    runner.run(engine.close())


@pytest.fixture
def running(engine: Remote) -> Running:
    def count() -> float:
        metrics = httpx2.get(f"{engine.base}/metrics").text
        return float(re.findall(r"^vllm:num_requests_running\{.*\} (\S+)", metrics, re.MULTILINE)[0])

    return count


def test_it_learns_what_is_served(engine: Remote, tiny: Path) -> None:
    assert (engine.model, engine.root, engine.max_model_len) == ("tiny", str(tiny), checkpoint.MAX_MODEL_LEN)


class TestAlike(Demands):
    """What is demanded of every engine."""


def test_it_tells_when_the_server_dies_and_leaves_none_of_its_processes(
    runner: asyncio.Runner, engine: Remote, server: tuple[subprocess.Popen[bytes], str]
) -> None:
    """The last test of the module: nobody serves the next."""
    process, _ = server

    async def main() -> None:
        chunks = engine.generate(ask(max_tokens=500, sampling={"ignore_eos": True}))
        await anext(chunks)
        process.send_signal(signal.SIGKILL)
        with pytest.raises(EngineDown):
            async for _ in chunks:
                pass
        assert not await engine.alive()
        with pytest.raises(EngineDown):
            await hear(engine, ask())

    before = guard.survivors(process.pid)
    titles = {Path(f"/proc/{pid}/cmdline").read_text().partition("\0")[0].strip() for pid in before}
    assert {"VLLM::EngineCore", "VLLM::Worker"} <= titles
    runner.run(main())
    began = time.monotonic()
    while guard.survivors(process.pid):
        assert time.monotonic() - began < 15, "an idle machine takes little more than one second"
        time.sleep(0.05)
