"""Back-off: pauses between failures in a row."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence


async def restart_after_errors(work: Callable[[], Awaitable[None]], pause_s: float, logger: logging.Logger) -> None:
    """Run endless `work`, and start it again `pause_s` seconds after an error: a task that ends would be missed in silence."""
    while True:
        try:
            await work()
        except Exception:
            logger.exception("a task has failed; it is started again in %.0f s", pause_s)
        await asyncio.sleep(pause_s)


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
