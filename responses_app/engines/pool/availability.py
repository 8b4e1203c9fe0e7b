"""Availability of an engine: taken out by a failure, and tried again after growing pauses."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

from responses_app.utils.backoff import Backoff

# Pauses between attempts to reach an engine that is out.
PAUSES_S = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0)
# Pause between health checks of an engine without requests.
IDLE_CHECK_S = 5.0


class Availability:
    """Availability of an engine, which is out until `restore`. `clock` returns seconds."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock, self._backoff = clock, Backoff(PAUSES_S)
        self.is_up = False
        self._next_check_s = clock()

    @property
    def is_due(self) -> bool:
        """Check whether the time of the next health check has come."""
        return self._clock() >= self._next_check_s

    def fail(self) -> None:
        """Take the engine out until the next health check, after a longer pause than the last one."""
        self.is_up = False
        self._next_check_s = self._clock() + self._backoff.next_pause_s()

    def restore(self) -> None:
        """Put the engine back after a health check. The pauses begin anew only with an answer (`answer`)."""
        self.is_up = True
        self._next_check_s = self._clock() + IDLE_CHECK_S

    def answer(self) -> None:
        """Record an answer to a request."""
        self._backoff.reset()
        self._next_check_s = self._clock() + IDLE_CHECK_S
