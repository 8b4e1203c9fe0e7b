"""What a listener hears of a run, and that it hears of silence too."""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing
from unittest import IsolatedAsyncioTestCase

from responses_app.runs.execute.broadcast import MAX_BATCH, Broadcast
from responses_app.store.log.records import EventFrame

PAUSE = 0.1


def frame(number: int) -> EventFrame:
    """A frame with that number."""
    return EventFrame(number, "response.output_text.delta", b"{}")


class BroadcastTest(IsolatedAsyncioTestCase):
    async def test_silence_is_told_again_and_again_and_counts_from_the_last_frame(self) -> None:
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

    async def test_any_number_of_listeners_hear_all_of_it_from_where_they_want(self) -> None:
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
