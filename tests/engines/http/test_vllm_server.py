"""Real `vllm serve`: the common requirements of engines, alone and in a pool, and the end of the processes with their owner."""

from __future__ import annotations

import asyncio
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from responses_app.engine_interface import EngineUnavailable
from responses_app.engines import orphan_guard
from responses_app.engines.http.client import HttpVllm
from responses_app.engines.pool.engine import EnginePool
from tests.support import plain_http
from tests.support.engines import image_checkpoint as checkpoint
from tests.support.engines.generate import collect, make_request
from tests.support.engines.image_requirements import ImageRequirements
from tests.support.engines.requirements import EngineRequirements, Running
from tests.support.waiting import wait_until

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def base(server: tuple[subprocess.Popen[bytes], str]) -> str:
    return urlsplit(server[1])._replace(query="").geturl()


@pytest.fixture
def running(base: str) -> Running:
    def count() -> float:
        metrics = plain_http.get(f"{base}/metrics").text
        return float(re.findall(r"^vllm:num_requests_running\{.*\} (\S+)", metrics, re.MULTILINE)[0])

    return count


def test_engine_reads_the_served_model(engine: HttpVllm, seeing: Path) -> None:
    assert (engine.model, engine.root, engine.max_model_len) == ("tiny", str(seeing), checkpoint.MAX_MODEL_LEN)


def test_log_of_vllm_has_the_ids_of_the_request_and_of_the_response(
    runner: asyncio.Runner, engine: HttpVllm, vllm_log: Path
) -> None:
    request = make_request(id="resp_0123", request_id="req_4567")
    runner.run(collect(engine, request))
    wait_until(lambda: "req_4567-resp_0123" in vllm_log.read_text(errors="replace"))


class TestRequirements(EngineRequirements):
    """Common requirements of engines."""


class TestImages(ImageRequirements):
    """Common requirements of engines that accept images."""


class TestRequirementsOfPool(EngineRequirements):
    """Common requirements of engines, for a pool of two clients of the server under two names."""

    @pytest.fixture(scope="class")
    @classmethod
    def engine(cls, runner: asyncio.Runner, base: str, engine: HttpVllm) -> Iterator[EnginePool]:
        """Start the pool after the server, which is ready when `engine` is."""
        pool = EnginePool({name: HttpVllm(base, priorities=True) for name in ("http://a", "http://b")})
        runner.run(pool.start())
        yield pool
        runner.run(pool.close())

    def test_both_names_have_had_requests(self, engine: EnginePool) -> None:
        """Must be the last test of the class: it reads what the others have done."""
        assert all(status.requests for status in engine.statuses)
        assert all(status.is_up and not status.in_flight for status in engine.statuses)


def test_dead_server_is_reported_and_leaves_no_process(
    runner: asyncio.Runner, engine: HttpVllm, server: tuple[subprocess.Popen[bytes], str]
) -> None:
    """Must be the last test of the folder that needs the server: it kills the server."""
    process, _ = server

    async def main() -> None:
        chunks = engine.generate(make_request(max_tokens=500, sampling={"ignore_eos": True}))
        await anext(chunks)
        process.send_signal(signal.SIGKILL)
        with pytest.raises(EngineUnavailable):
            async for _ in chunks:
                pass
        assert not await engine.is_healthy()
        with pytest.raises(EngineUnavailable):
            await collect(engine, make_request())

    before = orphan_guard.survivors(process.pid)
    titles = {Path(f"/proc/{pid}/cmdline").read_text().partition("\0")[0].strip() for pid in before}
    assert "VLLM::EngineCore" in titles
    runner.run(main())
    # An idle machine takes little more than one second.
    wait_until(lambda: not orphan_guard.survivors(process.pid), limit_s=60)
