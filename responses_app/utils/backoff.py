"""Back-off: growing pauses between failures in a row."""

from __future__ import annotations

from collections.abc import Sequence


class Backoff:
    """Pauses between failures in a row: one pause after another from `pauses_s`, the last one repeated, until `reset`."""

    def __init__(self, pauses_s: Sequence[float]) -> None:
        self._pauses_s = pauses_s
        self.failures = 0

    def reset(self) -> None:
        """Start with the first pause again."""
        self.failures = 0

    def next_pause_s(self) -> float:
        """Count a failure and return the pause behind it."""
        self.failures += 1
        return self._pauses_s[min(self.failures, len(self._pauses_s)) - 1]
