"""Watch over vLLM's core: a long step is no hang, and a core that hangs is away, killed, or back."""

from __future__ import annotations

import asyncio
import math
import subprocess
import sys
from collections.abc import Iterator
from multiprocessing.process import BaseProcess
from typing import Any

import pytest

from responses_app.engines.vllm import core_watch
from responses_app.engines.vllm.core_watch import AWAY_S, KILL_S, PING_EVERY_S, CoreWatch, cpu_seconds
from responses_app.engines.vllm.startup import kill_tree
from tests.support.manual_clock import ManualClock
from tests.support.waiting import run_ready_tasks, wait_until

TICK_S = 0.25
# Seconds until the CPU time was measured twice, and the core was away.
NOTICED_S = AWAY_S + 2 * PING_EVERY_S
STEP_LIMIT_S = 1000.0


class Core:
    """Core that answers pings or not, and uses CPU time or not."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, step_limit_s: float = math.inf) -> None:
        self.clock, self.killed = ManualClock(), list[object]()
        self.is_busy = False
        self.pings = 0
        self._gate = asyncio.Event()
        self._gate.set()
        self.cpu_s: float | None = 0.0
        process: Any = BaseProcess.__new__(BaseProcess)
        monkeypatch.setattr(BaseProcess, "is_alive", lambda _process: True)
        monkeypatch.setattr(core_watch, "kill_tree", self.killed.append)
        self.watch = CoreWatch(self._ping, [process], step_limit_s, cpu_s=lambda _cores: self.cpu_s, clock=self.clock)

    def hang(self, *, is_busy: bool = False) -> None:
        self._gate.clear()
        self.is_busy = is_busy

    def go_on(self) -> None:
        self._gate.set()

    async def pass_time(self, seconds: float) -> None:
        """Let `seconds` pass in ticks."""
        for _ in range(round(seconds / TICK_S)):
            self.clock.now_s += TICK_S
            if self.is_busy and self.cpu_s is not None:
                self.cpu_s += TICK_S
            self.watch.tick()
            await run_ready_tasks(3)

    async def _ping(self) -> bool:
        self.pings += 1
        await self._gate.wait()
        return False


def test_core_that_answers_is_pinged_each_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        core = Core(monkeypatch)
        await core.pass_time(10 * PING_EVERY_S)
        assert core.pings == 10
        assert not core.watch.is_away

    asyncio.run(main())


def test_long_step_is_no_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        core = Core(monkeypatch)
        await core.pass_time(PING_EVERY_S)
        core.hang(is_busy=True)
        await core.pass_time(10 * KILL_S)
        assert not core.watch.is_away
        assert not core.killed

    asyncio.run(main())


def test_hung_core_is_away_until_it_answers(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        core = Core(monkeypatch)
        core.hang()
        await core.pass_time(AWAY_S)
        assert not core.watch.is_away
        await core.pass_time(NOTICED_S - AWAY_S)
        assert core.watch.is_away
        # A core that computes again is still away, until it answers.
        core.is_busy = True
        await core.pass_time(2 * KILL_S)
        assert core.watch.is_away
        assert core.pings == 1, "pings do not pile up in a core that hangs"
        core.go_on()
        await core.pass_time(2 * TICK_S)
        assert not core.watch.is_away
        assert not core.killed

    with caplog.at_level("INFO"):
        asyncio.run(main())
    away, back = caplog.messages
    assert away.startswith("vLLM's core has not answered for 65 s")
    assert back.startswith("vLLM's core answers again, after 43")


def test_core_that_hangs_for_long_is_killed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        core = Core(monkeypatch)
        core.hang()
        await core.pass_time(KILL_S)
        assert not core.killed
        await core.pass_time(2 * KILL_S)
        assert len(core.killed) == 1

    asyncio.run(main())


@pytest.mark.parametrize("cpu_s", [0.0, None])
def test_step_beyond_the_limit_of_vllm_is_a_hang(monkeypatch: pytest.MonkeyPatch, cpu_s: float | None) -> None:
    async def main() -> None:
        core = Core(monkeypatch, STEP_LIMIT_S)
        core.cpu_s = cpu_s
        core.hang(is_busy=True)
        await core.pass_time(STEP_LIMIT_S)
        assert not core.watch.is_away
        assert not core.killed
        await core.pass_time(1)
        assert core.watch.is_away
        assert core.killed

    asyncio.run(main())


def test_pause_of_this_process_is_no_silence_of_the_core(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        core = Core(monkeypatch)
        core.hang()
        await core.pass_time(PING_EVERY_S)
        core.clock.now_s += 10 * KILL_S
        await core.pass_time(PING_EVERY_S)
        assert not core.watch.is_away

    asyncio.run(main())


@pytest.fixture
def child() -> Iterator[Any]:
    """Start a process whose child uses CPU time without an end."""
    busy = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'while True: pass'])"
    process: Any = subprocess.Popen([sys.executable, "-c", busy])
    yield process
    kill_tree(process)
    process.wait()


def test_cpu_time_includes_children_and_ends_with_the_process(child: Any) -> None:
    wait_until(lambda: (cpu_seconds([child]) or 0.0) > 0.5)
    kill_tree(child)
    child.wait()
    assert cpu_seconds([child]) is None
    assert cpu_seconds([]) is None
