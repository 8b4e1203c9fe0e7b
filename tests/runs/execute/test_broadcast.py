"""Events of a run that a listener gets, and heartbeats while there are none."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import aclosing
from typing import Any
from unittest import IsolatedAsyncioTestCase

from responses_app.protocol.encoding import EventFrame
from responses_app.runs.execute.broadcast import MAX_BATCH, Broadcast, FrameBatches
from tests.support.waiting import run_ready_tasks

PAUSE = 0.1
LAST = EventFrame(4, "response.completed", b"{}")


def frame(number: int) -> EventFrame:
    """A frame with that number."""
    return EventFrame(number, "response.output_text.delta", b"{}")


class BroadcastTest(IsolatedAsyncioTestCase):
    async def test_heartbeats_repeat_and_their_interval_counts_from_the_last_frame(self) -> None:
        feed, loop = Broadcast(), asyncio.get_running_loop()
        async with aclosing(feed.subscribe(pause=PAUSE)) as batches:
            feed.broadcast([frame(0)])
            self.assertEqual(await anext(batches), [frame(0)])
            self.assertEqual([*await anext(batches), *await anext(batches)], [])
            loop.call_later(0.7 * PAUSE, feed.broadcast, [frame(1)])
            self.assertEqual(await anext(batches), [frame(1)])
            since = time.monotonic()
            self.assertEqual([*await anext(batches)], [])
            self.assertGreaterEqual(time.monotonic() - since, 0.99 * PAUSE)
            loop.call_soon(feed.end)
            self.assertEqual([batch async for batch in batches], [])

    async def test_any_number_of_listeners_get_all_frames_from_their_start(self) -> None:
        feed, loop = Broadcast([frame(0)]), asyncio.get_running_loop()

        async def all_of(after: int) -> list[int]:
            return [one.number async for batch in feed.subscribe(after) for one in batch]

        loop.call_soon(feed.broadcast, [frame(1), frame(2)])
        loop.call_later(0.01, feed.broadcast, [frame(3)])
        loop.call_later(0.02, feed.end)
        received = await asyncio.gather(all_of(-1), all_of(0), all_of(2))
        self.assertEqual(received, [[0, 1, 2, 3], [1, 2, 3], [3]])

    async def test_a_batch_has_all_frames_that_are_there_up_to_the_limit(self) -> None:
        feed = Broadcast([frame(number) for number in range(MAX_BATCH + 3)])
        feed.end()
        self.assertEqual([len(batch) async for batch in feed.subscribe()], [MAX_BATCH, 3])


class PushTest(IsolatedAsyncioTestCase):
    """Frames that a subscriber's `push` takes, and those that are yielded."""

    def setUp(self) -> None:
        self.pushed: list[int] = []
        self.is_ready = True

    def push(self, frames: Sequence[EventFrame]) -> bool:
        if self.is_ready:
            self.pushed += [one.number for one in frames]
        return self.is_ready

    async def waiting(self, feed: Broadcast, after: int = -1, pause: float = 10.0) -> tuple[FrameBatches, asyncio.Task[Any]]:
        """Subscribe, and return the subscription and its next batch, after the subscriber has begun to wait."""
        batches = feed.subscribe(after, pause, push=self.push)
        following = asyncio.create_task(anext(batches, None))
        await run_ready_tasks()
        return batches, following

    async def test_waiting_subscriber_is_passed_over_until_the_terminal_frame(self) -> None:
        feed = Broadcast()
        batches, following = await self.waiting(feed)
        for frames in ([], [frame(0), frame(1)], [], [frame(2)]):
            feed.broadcast(frames)
        await run_ready_tasks()
        self.assertEqual((self.pushed, following.done()), ([0, 1, 2], False))
        feed.broadcast([frame(3), LAST])
        feed.end()
        self.assertEqual(await following, [frame(3), LAST])
        self.assertEqual(([batch async for batch in batches], self.pushed), ([], [0, 1, 2]))

    async def test_client_that_is_behind_is_served_by_batches_and_then_pushed_to_again(self) -> None:
        feed = Broadcast()
        batches, following = await self.waiting(feed)
        self.is_ready = False
        feed.broadcast([frame(0)])
        self.assertEqual(await following, [frame(0)])
        self.is_ready = True
        feed.broadcast([frame(1)])
        self.assertEqual(self.pushed, [], "the subscriber does not wait")
        self.assertEqual(await anext(batches), [frame(1)])
        following = asyncio.create_task(anext(batches, None))
        await run_ready_tasks()
        feed.broadcast([frame(2)])
        self.assertEqual((self.pushed, following.done()), ([2], False))
        feed.end(handed_over=True)
        self.assertIsNone(await following)

    async def test_rest_of_a_run_that_is_handed_over_follows_the_pushed_frames(self) -> None:
        async def next_batches(after: int) -> FrameBatches:
            yield [frame(after + 1)]

        feed = Broadcast()
        batches = feed.subscribe(continuation=next_batches, push=self.push)
        following = asyncio.create_task(anext(batches, None))
        await run_ready_tasks()
        feed.broadcast([frame(0), frame(1)])
        feed.end(handed_over=True)
        self.assertEqual((self.pushed, await following), ([0, 1], [frame(2)]))

    async def test_pushed_frames_end_the_silence(self) -> None:
        feed, loop = Broadcast(), asyncio.get_running_loop()
        _, following = await self.waiting(feed, pause=PAUSE)
        since = loop.time()
        loop.call_later(0.7 * PAUSE, feed.broadcast, [frame(0)])
        self.assertEqual([*await following], [])
        self.assertGreaterEqual(loop.time() - since, 1.6 * PAUSE)

    async def test_frames_before_the_wanted_ones_are_not_pushed(self) -> None:
        feed = Broadcast()
        _, following = await self.waiting(feed, after=1)
        for number in range(3):
            feed.broadcast([frame(number)])
        self.assertEqual((self.pushed, await following), ([], [frame(2)]))

    async def test_failing_push_fails_the_client_and_not_the_run(self) -> None:
        def broken(frames: Sequence[EventFrame]) -> bool:
            raise ValueError(frames)

        feed = Broadcast()
        batches = feed.subscribe(push=broken)
        following = asyncio.create_task(anext(batches, None))
        await run_ready_tasks()
        with self.assertLogs("responses.run", "ERROR"):
            feed.broadcast([frame(0)])
        self.assertEqual(await following, [frame(0)])
