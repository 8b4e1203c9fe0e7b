"""What a listener hears of a run, and that it hears of silence too."""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing
from unittest import IsolatedAsyncioTestCase

from responses_app.runs.execute.broadcast import Broadcast
from responses_app.store.log.records import EventFrame

PAUSE = 0.1


def frame(number: int) -> EventFrame:
    """A frame with that number."""
    return EventFrame(number, "response.output_text.delta", b"{}")


class BroadcastTest(IsolatedAsyncioTestCase):
    async def test_silence_is_told_again_and_again_and_counts_from_the_last_frame(self) -> None:
        feed, loop = Broadcast(), asyncio.get_running_loop()
        async with aclosing(feed.subscribe(pause=PAUSE)) as frames:
            feed.broadcast([frame(0)])
            self.assertEqual(await anext(frames), frame(0))
            self.assertIsNone(await anext(frames))
            self.assertIsNone(await anext(frames))
            loop.call_later(0.7 * PAUSE, feed.broadcast, [frame(1)])
            self.assertEqual(await anext(frames), frame(1))
            since = time.monotonic()
            self.assertIsNone(await anext(frames))
            self.assertGreaterEqual(time.monotonic() - since, 0.99 * PAUSE)
            loop.call_soon(feed.end)
            self.assertEqual([one async for one in frames], [])

    async def test_any_number_of_listeners_hear_all_of_it_from_where_they_want(self) -> None:
        feed, loop = Broadcast([frame(0)]), asyncio.get_running_loop()

        async def all_of(after: int) -> list[int]:
            return [one.number async for one in feed.subscribe(after) if one is not None]

        loop.call_soon(feed.broadcast, [frame(1), frame(2)])
        loop.call_later(0.01, feed.broadcast, [frame(3)])
        loop.call_later(0.02, feed.end)
        received = await asyncio.gather(all_of(-1), all_of(0), all_of(2))
        self.assertEqual(received, [[0, 1, 2, 3], [1, 2, 3], [3]])
