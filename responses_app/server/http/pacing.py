"""Fair scheduling of large reads: connections with large uploads share a fixed part of the event loop, in turn."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Protocol

# Bytes from which a read counts as part of a large upload.
LARGE_READ = 32 * 1024
# Length of a tick in seconds, and the share of large reads.
TICK_S = 0.001
SHARE_S = 0.0002
# Connections that resume at each tick.
RESUMED = 4


class Reader(Protocol):
    """Connection with reading that can be paused."""

    def pause_reading(self) -> None:
        """Pause reading."""
        ...

    def resume_reading(self) -> None:
        """Resume reading, unless paused for another reason."""
        ...


class Pacer:
    """Scheduler of large reads of an event loop: the remaining share of the tick and the waiting connections."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self.clock = clock
        self._left = SHARE_S
        self._waiting: deque[Reader] = deque()
        # Connections whose turn is in this tick, and connections that were too late for their turn.
        self._due: set[Reader] = set()
        self._late: deque[Reader] = deque()
        self._timer: asyncio.TimerHandle | None = None

    @property
    def exhausted(self) -> bool:
        """Return True if the share of this tick is used up."""
        return self._left <= 0

    def spend(self, reader: Reader, seconds: float) -> None:
        """Count the time of a large read, and queue the connection behind the waiting connections."""
        self._left -= seconds
        self._due.discard(reader)
        self._start()
        if self._waiting or self._late:
            self.wait(reader)

    def wait(self, reader: Reader) -> None:
        """Queue a connection. A connection that was too late comes first in the next tick."""
        reader.pause_reading()
        (self._late if reader in self._due else self._waiting).append(reader)
        self._start()

    def _start(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(TICK_S, self._tick)

    def _tick(self) -> None:
        self._timer = None
        # A read longer than the share reduces the shares of the next ticks.
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
