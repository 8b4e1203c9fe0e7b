"""Pacing of background work: pauses between steps, longer while the process is busy."""

from __future__ import annotations

import threading
import time

# CPU seconds of all threads per second from which the process counts as busy. The CPUs are full before: the engine needs the most.
BUSY_SHARE = 0.25
# Length of a measurement while the process is busy.
WINDOW_S = 0.1
# After each step comes a pause as long as the step, so that streams of this process get at least half of the time.
MIN_PAUSE_S = 0.005
# A busy process puts work off for so long; then the work goes on with short pauses, so that the table of events stays small.
MAX_BUSY_WAIT_S = 120.0


class Pacing:
    """Pauses of a run of background work in a thread. `stop` ends a pause at once."""

    def __init__(self, stop: threading.Event) -> None:
        self._stop = stop
        self._busy_wait_s = MAX_BUSY_WAIT_S
        self._began = time.monotonic()

    def pause(self) -> bool:
        """Pause after a step. Return False when stopped."""
        is_busy = self._is_busy_for(max(time.monotonic() - self._began, MIN_PAUSE_S))
        while is_busy and self._busy_wait_s > 0 and not self._stop.is_set():
            self._busy_wait_s -= WINDOW_S
            is_busy = self._is_busy_for(WINDOW_S)
        self._began = time.monotonic()
        return not self._stop.is_set()

    def _is_busy_for(self, seconds: float) -> bool:
        """Wait, and return whether the process was busy meanwhile. This thread only waits, so the CPU time is that of others."""
        cpu, began = time.process_time(), time.monotonic()
        self._stop.wait(seconds)
        return time.process_time() - cpu > BUSY_SHARE * (time.monotonic() - began)
