"""Pacing of background work: pauses between steps, longer while the process is busy."""

from __future__ import annotations

import threading
import time

# CPU seconds of the other threads per second from which the process counts as busy. The CPUs are full before: the engine needs the most.
BUSY_SHARE = 0.25
# Least length of a measurement. A busy process handles its tokens every 20 ms, and is idle in between.
WINDOW_S = 0.1
# After each step comes a pause as long as the step, so that streams of this process get at least half of the time.
MIN_PAUSE_S = 0.005
# A busy process puts work off for so long; then the work goes on with short pauses, so that the table of events stays small.
MAX_BUSY_WAIT_S = 120.0


class Pacing:
    """Pauses of a run of background work in a thread, one after each step. `stop` ends a pause at once."""

    def __init__(self, stop: threading.Event) -> None:
        self._stop = stop
        self._busy_wait_s = MAX_BUSY_WAIT_S
        self._step_began = time.monotonic()
        # Unknown: the first pause measures.
        self._is_busy = True
        self._begin_window()

    def pause(self) -> bool:
        """Pause after a step. Return False when stopped."""
        self._stop.wait(max(time.monotonic() - self._step_began, MIN_PAUSE_S))
        self._measure()
        while self._is_busy and self._busy_wait_s > 0 and not self._stop.is_set():
            self._busy_wait_s -= WINDOW_S
            self._stop.wait(WINDOW_S)
            self._measure()
        self._step_began = time.monotonic()
        return not self._stop.is_set()

    def _begin_window(self) -> None:
        self._window_began, self._cpu_before = time.monotonic(), _cpu_of_others()

    def _measure(self) -> None:
        """Update whether the process is busy, if the window is long enough."""
        elapsed = time.monotonic() - self._window_began
        if elapsed >= WINDOW_S:
            self._is_busy = _cpu_of_others() - self._cpu_before > BUSY_SHARE * elapsed
            self._begin_window()


def _cpu_of_others() -> float:
    """Return the CPU seconds of this process without those of this thread."""
    return time.process_time() - time.thread_time()
