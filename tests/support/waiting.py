"""Waiting for a condition that raises no event, with a limit."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

LIMIT_S = 30.0
_POLL_S = 0.01


def wait_until(condition: Callable[[], object], *, limit_s: float = LIMIT_S, poll_s: float = _POLL_S) -> float:
    """Block until `condition()` is true and return the seconds it took. Raises AssertionError after `limit_s`.

    For conditions of other processes. A condition of this process has an event, a future or an injected clock instead.
    """
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < limit_s, f"not true within {limit_s} s: {condition}"
        time.sleep(poll_s)
    return time.monotonic() - began


async def eventually(condition: Callable[[], object], *, limit_s: float = LIMIT_S, poll_s: float = _POLL_S) -> float:
    """Wait until `condition()` is true and return the seconds it took. Raises AssertionError after `limit_s`."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < limit_s, f"not true within {limit_s} s: {condition}"
        await asyncio.sleep(poll_s)
    return time.monotonic() - began


async def run_ready_tasks(rounds: int = 1) -> None:
    """Let every task that can run do so, `rounds` times."""
    for _ in range(rounds):
        await asyncio.sleep(0)
