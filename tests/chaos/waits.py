"""Pauses of the drill, and observations with a limit."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

from tests.support.waiting import WaitTimeout, eventually

T = TypeVar("T")

# For conditions that the time limit of the whole drill covers.
NO_LIMIT = math.inf


async def pause(seconds: float) -> None:
    """Let the load run on for `seconds`.

    Real time: the drill injects faults at random moments, and its clients retry as real clients do. No condition replaces these pauses.
    """
    await asyncio.sleep(seconds)


async def observe(look: Callable[[], Awaitable[T]], done: Callable[[T], object], *, limit_s: float, poll_s: float) -> T:
    """Repeat `look()` until `done(result)` is true, and return that result; after `limit_s` return the last one."""
    results: list[T] = []

    async def is_done() -> object:
        results[:] = [await look()]
        return done(results[0])

    with suppress(WaitTimeout):
        await eventually(is_done, limit_s=limit_s, poll_s=poll_s)
    return results[0]
