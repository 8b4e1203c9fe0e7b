"""Progress of a long command: one line on a terminal, and a line now and then elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable

from django.core.management.base import OutputWrapper

TERMINAL_EVERY_S = 0.2
FILE_EVERY_S = 10.0


class ProgressLine:
    """Progress of one part: the number done of `total`, the rate and the remaining time. A terminal shows it in one line."""

    def __init__(self, out: OutputWrapper, name: str, total: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.done = 0
        self._out, self._name, self._total, self._clock = out, name, total, clock
        self._is_terminal = out.isatty()
        self._began = self._shown = clock()

    def add(self, count: int) -> None:
        """Count more, and show the progress if it was shown long ago."""
        self.done += count
        now = self._clock()
        if now - self._shown >= (TERMINAL_EVERY_S if self._is_terminal else FILE_EVERY_S):
            self._shown = now
            self._write(self._text(now - self._began), ending="" if self._is_terminal else "\n")

    def end(self, text: str) -> None:
        """Write the result, on a terminal in place of the progress."""
        self._write(text, ending="\n")

    def _text(self, seconds: float) -> str:
        rate = self.done / seconds
        total = max(self._total, self.done)
        remaining = f", {_duration((total - self.done) / rate)} left" if rate else ""
        return f"{self._name}: {self.done:,} of {total:,}, {rate:,.0f} a second{remaining}"

    def _write(self, text: str, ending: str) -> None:
        # Back to the beginning of the line, and clear the line.
        self._out.write(f"\r\x1b[K{text}" if self._is_terminal else text, ending=ending)
        self._out.flush()


def _duration(seconds: float) -> str:
    minutes, seconds_left = divmod(round(seconds), 60)
    return (
        f"{minutes // 60} h {minutes % 60} min"
        if minutes >= 60
        else f"{minutes} min {seconds_left} s"
        if minutes
        else f"{seconds_left} s"
    )
