"""In-memory broadcast of the frames of a run to the subscribers in this process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import TypeAlias

from responses_app.store.log.records import EventFrame

# Batches of frames, in order. An empty batch stands for a pause without frames.
FrameBatches: TypeAlias = AsyncGenerator[Sequence[EventFrame], None]
Continuation: TypeAlias = Callable[[int], FrameBatches]

# Frames of a batch, so that a subscriber that is far behind needs little memory at a time.
MAX_BATCH = 256


class Broadcast:
    """Frames in the order of the frame numbers, from 0. Any number of subscribers read the frames, each at a separate pace.

    `ended` means that no more frames come from this process. `handed_over` means that the response goes on nevertheless: another
    process, or this process a little later, continues the run, and subscribers find the rest in the log. `on_frames`, if set, is
    called whenever there are more frames.
    """

    def __init__(self, frames: Sequence[EventFrame] = ()) -> None:
        self.frames: list[EventFrame] = list(frames)
        self.ended = self.handed_over = False
        self.on_frames: Callable[[], None] | None = None
        self._subscribers: set[Subscriber] = set()

    async def subscribe(self, after: int = -1, pause: float = 10.0, rest: Continuation | None = None) -> FrameBatches:
        """Yield all frames there are with numbers above `after`, up to the terminal frame; an empty batch after `pause` silent seconds.

        `rest` continues behind the last frame if the run was handed over.
        """
        place, subscriber = after + 1, Subscriber(pause)
        self._subscribers.add(subscriber)
        try:
            while place < len(self.frames) or not self.ended:
                if there := self.frames[place : place + MAX_BATCH]:
                    place += len(there)
                    yield there
                elif not await subscriber.wait():
                    yield ()
        finally:
            self._subscribers.discard(subscriber)
            subscriber.close()
        if self.handed_over and rest is not None:
            async with aclosing(rest(place - 1)) as batches:
                async for batch in batches:
                    yield batch

    def broadcast(self, frames: Sequence[EventFrame]) -> None:
        """Add frames and wake the subscribers."""
        self.frames.extend(frames)
        self._wake()
        if self.on_frames is not None:
            self.on_frames()

    def end(self, *, handed_over: bool = False) -> None:
        """End the broadcast in this process and wake the subscribers."""
        self.ended, self.handed_over = True, handed_over
        self._wake()

    def _wake(self) -> None:
        for subscriber in self._subscribers:
            subscriber.wake(True)


class Subscriber:
    """Wait of a subscriber, with a single timer: a timer for each event costs as much as encoding the event."""

    def __init__(self, pause: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._pause = pause
        self._woken: asyncio.Future[bool] | None = None
        self._since = 0.0
        self._timer: asyncio.TimerHandle | None = None

    async def wait(self) -> bool:
        """Wait for a frame or the end; return False after a pause without either."""
        self._since = self._loop.time()
        self._woken = self._loop.create_future()
        if self._timer is None:
            self._timer = self._loop.call_at(self._since + self._pause, self._check_pause)
        return await self._woken

    def wake(self, value: bool) -> None:
        """End the wait with `value`: True for more frames or the end, False for a pause."""
        if self._woken is not None and not self._woken.done():
            self._woken.set_result(value)

    def close(self) -> None:
        """Cancel the timer."""
        if self._timer is not None:
            self._timer.cancel()

    def _check_pause(self) -> None:
        """End the wait if the whole pause was silent; otherwise check again when the pause would be over."""
        due = self._since + self._pause
        if due <= self._loop.time() or self._woken is None:
            self._timer = None
            self.wake(False)
        else:
            self._timer = self._loop.call_at(due, self._check_pause)
