"""Refusal of an engine that runs and takes no more requests: a pause before further requests."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

# Pause after a refusal without `Retry-After`, as the refusals of `vllm serve --max-num-queued-reqs`.
REFUSAL_S = 1.0
MAX_REFUSAL_S = 60.0


class Refusal:
    """Pause after a refusal. `clock` returns seconds."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._until_s = clock()

    @property
    def left_s(self) -> float:
        """Seconds until the end of the pause; 0 without a pause."""
        return max(0.0, self._until_s - self._clock())

    def begin(self, seconds: float | None) -> None:
        """Begin a pause of `seconds`, at most MAX_REFUSAL_S, by default REFUSAL_S."""
        self._until_s = self._clock() + (REFUSAL_S if seconds is None else min(seconds, MAX_REFUSAL_S))
