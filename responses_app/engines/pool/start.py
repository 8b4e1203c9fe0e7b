"""Start of a pool: all engines side by side, and a check that all serve the same model."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

from responses_app.engine_interface import EngineUnavailable, EngineUnreachable
from responses_app.engines.pool.member import PoolMember

logger = logging.getLogger("responses.engines")

RETRY_S = 0.25
# How long a start waits for further engines once one engine is ready; these are started later.
GRACE_S = 5.0


async def start_members(
    members: Sequence[PoolMember], start_wait: float, clock: Callable[[], float], sleep: Callable[[float], Awaitable[None]]
) -> None:
    """Start all engines. Wait up to `start_wait` seconds for the first engine, then up to GRACE_S for the others.

    Raises EngineUnavailable if no engine is reached, and at once if an engine serves something else.
    """
    deadline_s = clock() + start_wait
    while errors := await _attempt([member for member in members if not member.has_started]):
        has_started = any(member.has_started for member in members)
        if has_started:
            deadline_s = min(deadline_s, clock() + GRACE_S)
        if clock() >= deadline_s:
            if not has_started:
                raise EngineUnreachable("; ".join(map(str, errors)))
            return logger.warning("started without %s", "; ".join(map(str, errors)))
        await sleep(RETRY_S)
    check_same_model(members)


def check_same_model(members: Sequence[PoolMember]) -> None:
    """Raise EngineUnavailable unless all engines that have started have the same context length."""
    lengths = {member.name: member.engine.max_model_len for member in members if member.has_started}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name} has {length}" for name, length in lengths.items())
        raise EngineUnavailable(f"the URLs of a model must serve the same model, but max_model_len differs: {listed}")


async def _attempt(members: Sequence[PoolMember]) -> list[EngineUnreachable]:
    """Start `members` side by side. Return the errors of those that are away. Raises other errors."""
    results = await asyncio.gather(*(_start(member) for member in members), return_exceptions=True)
    errors = [result for result in results if isinstance(result, EngineUnreachable)]
    for result in results:
        if isinstance(result, BaseException) and result not in errors:
            raise result
    return errors


async def _start(member: PoolMember) -> None:
    try:
        is_healthy = await member.start_or_check()
    except EngineUnreachable:
        member.availability.fail()
        raise
    if is_healthy:
        member.availability.restore()
    else:
        member.availability.fail()
