"""Counter of repetitions in a sequence of tokens."""

from __future__ import annotations

from collections import deque
from typing import Final

# Longest repeated sequence in tokens.
MAX_PERIOD: Final = 16


class RepetitionCounter:
    """Counter: `feed` tokens, and `count` is how often the last few tokens stand in a row, at least 1."""

    def __init__(self) -> None:
        self._tail: deque[int] = deque(maxlen=MAX_PERIOD)
        # For each period from 1 on, the number of tokens in a row that equal the token one period before.
        self._runs = [0] * MAX_PERIOD
        self._has_runs = False

    @property
    def count(self) -> int:
        """Return the largest number of repetitions over all periods."""
        return 1 if not self._has_runs else max(run // period + 1 for period, run in enumerate(self._runs, 1))

    def feed(self, token: int) -> None:
        """Append a token."""
        if token in self._tail:
            for at, earlier in enumerate(reversed(self._tail)):
                self._runs[at] = self._runs[at] + 1 if token == earlier else 0
            self._has_runs = True
        elif self._has_runs:
            self._clear_runs()
        self._tail.append(token)

    def clear(self) -> None:
        """Forget all tokens."""
        self._tail.clear()
        self._clear_runs()

    def _clear_runs(self) -> None:
        self._runs, self._has_runs = [0] * MAX_PERIOD, False
