"""Concurrent startups of vLLM, with a sleeping process in place of the core."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import subprocess
import threading
from collections.abc import Iterator, Mapping
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from responses_app.engine_interface import EngineUnavailable
from responses_app.engines.vllm import startup
from responses_app.engines.vllm.socket_folder import SocketFolder
from responses_app.engines.vllm.startup import RESTORED_VARIABLES, VllmStartup
from tests.support.server.processes import family, left
from tests.support.waiting import eventually

RESTORED_ONE = RESTORED_VARIABLES[1]


def core() -> None:
    """Start a core with a worker that survives the end of the core."""
    subprocess.run(["sleep", "600"], start_new_session=True, check=False)


class FakeVllm:
    """Replacement of `load`: `cores` are the started processes; all startups end when `up` is set."""

    def __init__(self) -> None:
        self.cores: dict[str, BaseProcess] = {}
        self.up = threading.Event()
        self.turn = threading.Lock()

    def load(self, model: str, options: Mapping[str, str]) -> str:
        assert self.turn.acquire(blocking=False), "two at a time in what must be done in turn"
        try:
            if model == "bad":
                raise ValueError("no such model")
            os.environ[RESTORED_ONE] = model
            process = multiprocessing.get_context("spawn").Process(target=core)
            process.start()
            self.cores[model] = process
        finally:
            self.turn.release()
        while not self.up.wait(0.05):
            if not process.is_alive():
                raise RuntimeError("the core has died")
        return model

    def inherited(self, model: str) -> str:
        """Return the environment inherited by the core of that model."""
        environ = Path(f"/proc/{self.cores[model].pid}/environ").read_text().split("\0")
        return next(entry.partition("=")[2] for entry in environ if entry.startswith(RESTORED_ONE))


@pytest.fixture
def vllm(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeVllm]:
    vllm = FakeVllm()
    monkeypatch.setattr(startup, "load", vllm.load)
    monkeypatch.setattr(startup, "starts_concurrently", lambda options: "alone" not in options)
    monkeypatch.setenv(RESTORED_ONE, "ours")
    yield vllm
    vllm.up.set()
    for process in vllm.cores.values():
        startup.kill_tree(process)
        process.join()


def test_the_second_core_starts_while_the_first_is_waited_for(vllm: FakeVllm) -> None:
    async def main() -> None:
        starts = [VllmStartup(model, {}, SocketFolder()) for model in ("a", "b")]
        await eventually(lambda: len(vllm.cores) == 2)
        vllm.up.set()
        assert [await start.llm() for start in starts] == ["a", "b"]

    asyncio.run(main())
    assert (vllm.inherited("a"), vllm.inherited("b")) == ("a", "b")
    assert os.environ[RESTORED_ONE] == "ours"


class CountingLock:
    """Lock that counts failed attempts to acquire."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.refusals = 0

    def acquire(self, blocking: bool = True) -> bool:
        is_acquired = self._lock.acquire(blocking)
        self.refusals += not is_acquired
        return is_acquired

    def release(self) -> None:
        self._lock.release()


def test_start_waits_for_an_exclusive_start(vllm: FakeVllm, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = CountingLock()
    monkeypatch.setattr(startup, "_startup_lock", lock)

    async def main() -> None:
        alone, other = VllmStartup("a", {"alone": "1"}, SocketFolder()), VllmStartup("b", {}, SocketFolder())
        await eventually(lambda: "a" in vllm.cores)
        await eventually(lambda: lock.refusals >= 5)
        assert list(vllm.cores) == ["a"]
        vllm.up.set()
        assert [await alone.llm(), await other.llm()] == ["a", "b"]

    asyncio.run(main())


def test_a_failure_lets_the_next_one_start(vllm: FakeVllm) -> None:
    async def main() -> None:
        vllm.up.set()
        bad, good = VllmStartup("bad", {}, SocketFolder()), VllmStartup("good", {}, SocketFolder())
        with pytest.raises(ValueError, match="no such model"):
            await bad.llm()
        assert await good.llm() == "good"
        assert await bad.end() is None

    asyncio.run(main())


@pytest.mark.slow
def test_a_cancelled_start_takes_its_own_processes_along_and_no_others(vllm: FakeVllm) -> None:
    async def main() -> None:
        given_up, other = VllmStartup("a", {}, SocketFolder()), VllmStartup("b", {}, SocketFolder())
        waiting = asyncio.create_task(given_up.llm())
        await eventually(lambda: len(vllm.cores) == 2)
        pid = vllm.cores["a"].pid
        assert pid
        await eventually(lambda: len(family(pid)) == 2)
        processes = family(pid)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert await given_up.end() is None
        assert left(processes) == []
        assert vllm.cores["b"].is_alive()
        vllm.up.set()
        assert await other.llm() == "b"

    asyncio.run(main())


def test_a_start_that_is_ended_before_its_turn_starts_nothing(vllm: FakeVllm) -> None:
    async def main() -> None:
        first, second = VllmStartup("a", {"alone": "1"}, SocketFolder()), VllmStartup("b", {}, SocketFolder())
        waiting = asyncio.create_task(second.llm())
        await eventually(lambda: "a" in vllm.cores)
        ending = asyncio.create_task(second.end())
        vllm.up.set()
        assert await first.llm() == "a"
        assert await ending is None
        with pytest.raises(EngineUnavailable, match="given up"):
            await waiting
        assert list(vllm.cores) == ["a"]

    asyncio.run(main())


def test_engine_ready_after_cancellation_is_returned(vllm: FakeVllm) -> None:
    async def main() -> None:
        vllm.up.set()
        start = VllmStartup("a", {}, SocketFolder())
        await eventually(start._work.done)
        assert await start.end() == "a"
        with pytest.raises(EngineUnavailable, match="given up"):
            await start.llm()

    asyncio.run(main())
