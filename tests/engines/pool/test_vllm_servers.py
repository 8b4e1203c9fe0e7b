"""Pool with a real `vllm serve`: the common requirements of engines."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest

from responses_app.engines.http.client import HttpVllm
from responses_app.engines.pool.engine import EnginePool
from tests.support.engines.requirements import START_LIMIT_S, EngineRequirements, Running
from tests.support.engines.vllm_server import connected, serving

pytestmark = [pytest.mark.engine, pytest.mark.timeout(START_LIMIT_S)]


@pytest.fixture(scope="module")
def server(runner: asyncio.Runner, tiny: Path) -> Iterator[str]:
    """Run a server, and yield its URL when it is ready."""
    with serving(tiny) as (process, url), connected(runner, process, url):
        yield urlsplit(url)._replace(query="").geturl()


@pytest.fixture(scope="module")
def engine(runner: asyncio.Runner, server: str) -> Iterator[EnginePool]:
    """Start a pool of two clients of the server, under two names."""
    pool = EnginePool({name: HttpVllm(server, priorities=True) for name in ("http://a", "http://b")})
    runner.run(pool.start())
    yield pool
    runner.run(pool.close())


@pytest.fixture
def running(server: str) -> Running:
    def count() -> float:
        metrics = httpx2.get(f"{server}/metrics").text
        return float(re.findall(r"^vllm:num_requests_running\{.*\} (\S+)", metrics, re.MULTILINE)[0])

    return count


class TestRequirements(EngineRequirements):
    """Common requirements of engines."""


def test_both_names_have_had_requests(engine: EnginePool) -> None:
    assert all(status.requests for status in engine.statuses)
    assert all(status.is_up and not status.in_flight for status in engine.statuses)
