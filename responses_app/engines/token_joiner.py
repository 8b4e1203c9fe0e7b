"""Joining of tokens: while this process is busy, all requests take their new tokens together, every 20 ms.

vLLM keeps the tokens of a request that is not read, and gives them in one output. One chunk with several tokens costs as much as a
chunk with one token, and the events of all requests leave in one commit.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

# Seconds between two ticks. A token waits at most so long.
TICK_S = 0.02
# CPU seconds of this process per second: busy from the first value on, until below the second. Joining itself halves the work.
BUSY_SHARE, QUIET_SHARE = 0.5, 0.2
# Length of a measurement.
WINDOW_S = 0.1


class TokenJoiner:
    """Clock of the ticks, and the measurement of the load. `clock` and `cpu` return seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, cpu: Callable[[], float] = time.process_time) -> None:
        self._clock, self._cpu = clock, cpu
        self._began, self._used = clock(), cpu()
        self._is_busy = False

    def pause_s(self) -> float:
        """Return the seconds that a request has to wait before it takes more tokens: 0 unless the process is busy."""
        now = self._clock()
        if now - self._began >= WINDOW_S:
            self._measure(now)
        return TICK_S - now % TICK_S if self._is_busy else 0.0

    async def wait(self) -> None:
        """Wait for the next tick if the process is busy."""
        if pause_s := self.pause_s():
            await asyncio.sleep(pause_s)

    def _measure(self, now: float) -> None:
        used = self._cpu()
        share = (used - self._used) / (now - self._began)
        self._is_busy = share >= (QUIET_SHARE if self._is_busy else BUSY_SHARE)
        self._began, self._used = now, used
