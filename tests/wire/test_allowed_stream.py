"""Streams whose reader loses the right to read: when the check comes, and what it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from unittest.mock import AsyncMock

from django.db import OperationalError

from responses_app.protocol.encoding import EventFrame
from responses_app.runs.execute.broadcast import Broadcast, FrameBatches, Push
from responses_app.wire.allowed_stream import CHECK_EVERY_S, while_allowed
from tests.support.manual_clock import ManualClock
from tests.support.waiting import run_ready_tasks


def frames(*numbers: int) -> list[EventFrame]:
    return [EventFrame(number, "response.output_text.delta", b"{}") for number in numbers]


class CheckedSubscriber:
    """Subscriber of a broadcast whose right is asked of `is_allowed`. `pushed` and `read` are the numbers of its frames."""

    def __init__(self, is_allowed: AsyncMock) -> None:
        self.clock, self.broadcast = ManualClock(), Broadcast()
        self.pushed: list[int] = []
        self.read: list[int] = []
        batches = while_allowed(self._subscribe, is_allowed, self.clock)(self._push)
        self.task = asyncio.ensure_future(self._read_all(batches))

    def _subscribe(self, push: Push | None) -> FrameBatches:
        return self.broadcast.subscribe(push=push)

    def _push(self, batch: Sequence[EventFrame]) -> bool:
        self.pushed += [frame.number for frame in batch]
        return True

    async def _read_all(self, batches: FrameBatches) -> None:
        async for batch in batches:
            self.read += [frame.number for frame in batch]

    async def send(self, *numbers: int) -> None:
        await run_ready_tasks(5)
        self.broadcast.broadcast(frames(*numbers))
        await run_ready_tasks(5)


def test_right_is_asked_when_it_is_due_also_of_a_client_that_gets_everything_pushed() -> None:
    async def main() -> None:
        is_allowed = AsyncMock(side_effect=[True, False])
        reader = CheckedSubscriber(is_allowed)
        await reader.send(0)
        await reader.clock.advance(CHECK_EVERY_S - 1)
        await reader.send(1)
        assert is_allowed.await_count == 0
        await reader.clock.advance(1)
        await reader.send(2)
        await reader.send(3)
        assert (is_allowed.await_count, reader.pushed, reader.read) == (1, [0, 1, 3], [2])
        await reader.clock.advance(CHECK_EVERY_S)
        await reader.send(4)
        assert reader.task.done()
        assert (is_allowed.await_count, reader.pushed, reader.read) == (2, [0, 1, 3], [2])

    asyncio.run(main())


def test_stream_goes_on_while_the_database_is_away() -> None:
    async def main() -> None:
        reader = CheckedSubscriber(AsyncMock(side_effect=OperationalError))
        for number in range(2):
            await reader.clock.advance(CHECK_EVERY_S)
            await reader.send(number)
        assert reader.read == [0, 1]
        reader.broadcast.end()
        await reader.task

    asyncio.run(main())
