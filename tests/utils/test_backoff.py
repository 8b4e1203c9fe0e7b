"""Back-off: the pauses grow, the last one repeats, and a reset starts with the first one again."""

from __future__ import annotations

import asyncio
import logging

import pytest

from responses_app.utils.backoff import Backoff, restart_after_errors
from tests.support.waiting import LIMIT_S


def test_pauses_grow_and_the_last_one_repeats() -> None:
    backoff = Backoff((0.5, 1.0, 2.0))
    assert [backoff.next_pause_s() for _ in range(5)] == [0.5, 1.0, 2.0, 2.0, 2.0]
    assert backoff.failures == 5


def test_a_reset_starts_with_the_first_pause_again() -> None:
    backoff = Backoff((0.5, 1.0))
    backoff.next_pause_s()
    backoff.reset()
    assert backoff.failures == 0
    assert backoff.next_pause_s() == 0.5


def test_endless_work_is_started_again_after_errors(caplog: pytest.LogCaptureFixture) -> None:
    errors = [ValueError("no"), ExceptionGroup("no", [ValueError()])]

    async def main() -> None:
        is_running = asyncio.Event()

        async def fail_twice() -> None:
            if errors:
                raise errors.pop()
            is_running.set()
            await asyncio.Event().wait()

        task = asyncio.create_task(restart_after_errors(fail_twice, 0.0, logging.getLogger()))
        await asyncio.wait_for(is_running.wait(), LIMIT_S)
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled()

    asyncio.run(main())
    assert caplog.text.count("a task has failed; it is started again in 0 s") == 2
