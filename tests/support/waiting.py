"""Waiting for a condition that raises no event, with a limit."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable

LIMIT_S = 120.0
_POLL_S = 0.01


class WaitTimeout(AssertionError):
    """Condition that was not true within the limit."""


def wait_until(
    condition: Callable[[], object],
    *,
    limit_s: float = LIMIT_S,
    poll_s: float = _POLL_S,
    explain: Callable[[], object] | None = None,
) -> float:
    """Block until `condition()` is true and return the seconds it took. Raises WaitTimeout after `limit_s`, with the text of `explain()`.

    For conditions of other processes. A condition of this process has an event, a future or an injected clock instead.
    """
    began = time.monotonic()
    while not condition():
        _check_limit(condition, began, limit_s, explain)
        time.sleep(poll_s)
    return time.monotonic() - began


async def eventually(
    condition: Callable[[], object],
    *,
    limit_s: float = LIMIT_S,
    poll_s: float = _POLL_S,
    explain: Callable[[], object] | None = None,
) -> float:
    """Wait as `wait_until` does, without blocking the event loop. The condition may be a coroutine function."""
    began = time.monotonic()
    while not (await value if inspect.isawaitable(value := condition()) else value):
        _check_limit(condition, began, limit_s, explain)
        await asyncio.sleep(poll_s)
    return time.monotonic() - began


def _check_limit(condition: object, began: float, limit_s: float, explain: Callable[[], object] | None) -> None:
    if time.monotonic() - began >= limit_s:
        raise WaitTimeout(f"not true within {limit_s} s: {condition}" + (f"\n{explain()}" if explain else ""))


async def run_ready_tasks(rounds: int = 1) -> None:
    """Let every task that can run do so, `rounds` times."""
    for _ in range(rounds):
        await asyncio.sleep(0)
