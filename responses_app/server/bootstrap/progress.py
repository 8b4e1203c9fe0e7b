"""Progress output: a line for each step, with a running clock on a terminal."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

TICK = 0.5
# Without a terminal, a long step prints a line only every QUIET_TICK seconds.
QUIET_TICK = 20.0


class Progress:
    """Progress printer; `out` is stderr by default."""

    def __init__(self, out: TextIO | None = None) -> None:
        self.out = out or sys.stderr
        self.live = self.out.isatty()

    def line(self, text: str = "") -> None:
        """Print a line."""
        print(text, file=self.out, flush=True)

    def note(self, text: str) -> None:
        """Print a line within a running step."""
        self._draw(f"  {text}", end=True)

    @contextmanager
    def step(self, title: str, detail: Callable[[], str] = lambda: "") -> Iterator[None]:
        """Show a running step with the seconds and the text of `detail()`, and the total time at the end."""
        began, over = time.monotonic(), threading.Event()
        self._draw(f"{title} ...", end=not self.live)
        clock = threading.Thread(target=self._tick, args=(title, detail, began, over), daemon=True)
        clock.start()
        try:
            yield
        except BaseException as error:
            self._finish(
                clock, over, f"{title}: {'failed' if isinstance(error, Exception) else 'stopped'} after {_seconds(began)}"
            )
            raise
        self._finish(clock, over, f"{title}: {_seconds(began)}")

    def _tick(self, title: str, detail: Callable[[], str], began: float, over: threading.Event) -> None:
        while not over.wait(TICK if self.live else QUIET_TICK):
            self._draw(f"{title} ... {_seconds(began)} {detail()}".rstrip(), end=not self.live)

    def _finish(self, clock: threading.Thread, over: threading.Event, text: str) -> None:
        over.set()
        clock.join()
        self._draw(text, end=True)

    def _draw(self, text: str, end: bool) -> None:
        if self.live:
            self.out.write("\r\x1b[K" + text[:100])
        else:
            self.out.write(text)
        self.out.write("\n" if end else "")
        self.out.flush()


def _seconds(began: float) -> str:
    return f"{time.monotonic() - began:.1f} s"
