"""Fair scheduling of large reads: connections that send much get a share of the event loop together, in turn."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Protocol

# A read of so many bytes is one of many: a request in one piece is shorter than two of them.
LARGE_READ = 32 * 1024
# Large reads may take so long in each tick. The rest of it is for everybody else.
TICK_S = 0.001
SHARE_S = 0.0002
# Connections that read again at each tick; what is left of the share decides how often.
RESUMED = 4


class Reader(Protocol):
    """A connection that can be made to wait."""

    def pause_reading(self) -> None:
        """Read nothing for now."""
        ...

    def resume_reading(self) -> None:
        """Read again, if nothing else is against it."""
        ...


class Pacer:
    """The share that is left in this tick, and the connections that wait for the next one. One for each event loop."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self.clock = clock
        self._left = SHARE_S
        self._waiting: deque[Reader] = deque()
        # Those whose turn has come in this tick and who have not read yet, and those who came too late for it.
        self._due: set[Reader] = set()
        self._late: deque[Reader] = deque()
        self._timer: asyncio.TimerHandle | None = None

    @property
    def exhausted(self) -> bool:
        """Whether the share of this tick is used up."""
        return self._left <= 0

    def spend(self, reader: Reader, seconds: float) -> None:
        """Count what a large read of this connection has taken. It goes behind those that wait."""
        self._left -= seconds
        self._due.discard(reader)
        self._start()
        if self._waiting or self._late:
            self.wait(reader)

    def wait(self, reader: Reader) -> None:
        """Have a connection wait for its turn; one that came too late for it in this tick has the next before all others."""
        reader.pause_reading()
        (self._late if reader in self._due else self._waiting).append(reader)
        self._start()

    def _start(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(TICK_S, self._tick)

    def _tick(self) -> None:
        self._timer = None
        # A read that took longer than the share is paid for by the ticks that follow.
        self._left = min(self._left + SHARE_S, SHARE_S)
        self._due.clear()
        if not self.exhausted:
            queue = self._late or self._waiting
            for _ in range(min(RESUMED, len(queue))):
                reader = queue.popleft()
                self._due.add(reader)
                reader.resume_reading()
        if self._waiting or self._late or self._left < SHARE_S:
            self._start()
