"""Output of a runner of the sandbox: stored until the runner is ready, and passed on from then on."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Callable

CHUNK = 65_536


def follow(errors: int, ready: int, on_ready: Callable[[], None]) -> bytes | None:
    """Read from the descriptors until the end of `errors`. Return what a runner that was never ready has written, else None.

    A byte from `ready` means that the runner is ready.
    """
    buffer, watched, is_ready = b"", [errors, ready], False
    while errors in watched:
        readable, _, _ = select.select(watched, [], [])
        if ready in readable:
            watched.remove(ready)
            if os.read(ready, 1):
                is_ready = True
                on_ready()
                _pass_on(buffer)
        if errors in readable:
            text = os.read(errors, CHUNK)
            if not text:
                watched.remove(errors)
            elif is_ready:
                _pass_on(text)
            else:
                buffer = (buffer + text)[-CHUNK:]
    return None if is_ready else buffer


def _pass_on(text: bytes) -> None:
    sys.stderr.write(text.decode(errors="replace"))
    sys.stderr.flush()
