"""Manual clock for code with parameters `clock` and `sleep`."""

from __future__ import annotations

import asyncio

from tests.support.waiting import run_ready_tasks


class ManualClock:
    """Clock in seconds that only `advance` moves. Calling the clock returns the time; `sleep` replaces asyncio.sleep."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self._sleepers: list[tuple[float, asyncio.Event]] = []

    def __call__(self) -> float:
        return self.now_s

    async def sleep(self, seconds: float) -> None:
        """Wait until the clock has been advanced by `seconds`."""
        woken = asyncio.Event()
        self._sleepers.append((self.now_s + seconds, woken))
        await woken.wait()

    async def advance(self, seconds: float) -> None:
        """Move the clock, wake the sleepers that are due, and let these run."""
        await run_ready_tasks(5)
        self.now_s += seconds
        due = [sleeper for sleeper in self._sleepers if sleeper[0] <= self.now_s]
        self._sleepers = [sleeper for sleeper in self._sleepers if sleeper not in due]
        for _, woken in due:
            woken.set()
        await run_ready_tasks(5)
