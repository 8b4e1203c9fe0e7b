"""In-memory broadcast of the frames of a run to the subscribers in this process."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import TypeAlias

from responses_app.protocol.encoding import EventFrame
from responses_app.store.log.reader import TERMINAL

logger = logging.getLogger("responses.run")

# Batches of frames, in order. An empty batch stands for a pause without frames.
FrameBatches: TypeAlias = AsyncGenerator[Sequence[EventFrame], None]
Continuation: TypeAlias = Callable[[int], FrameBatches]
# Sends frames to a client at once, or returns False if the client is behind.
Push: TypeAlias = Callable[[Sequence[EventFrame]], bool]

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

    async def subscribe(
        self, after: int = -1, pause: float = 10.0, continuation: Continuation | None = None, push: Push | None = None
    ) -> FrameBatches:
        """Yield all frames there are with numbers above `after`, up to the terminal frame; an empty batch after `pause` silent seconds.

        `continuation` continues behind the last frame if the run was handed over. While the subscriber waits, `push` gets new frames at
        once and in place of the subscriber; those that `push` refuses, and the terminal frame, are yielded.
        """
        subscriber = Subscriber(after + 1, pause, push)
        self._subscribers.add(subscriber)
        try:
            while subscriber.place < len(self.frames) or not self.ended:
                if there := self.frames[subscriber.place : subscriber.place + MAX_BATCH]:
                    subscriber.place += len(there)
                    yield there
                elif not await subscriber.wait():
                    yield ()
        finally:
            self._subscribers.discard(subscriber)
            subscriber.close()
        if self.handed_over and continuation is not None:
            async with aclosing(continuation(subscriber.place - 1)) as batches:
                async for batch in batches:
                    yield batch

    def broadcast(self, frames: Sequence[EventFrame]) -> None:
        """Add frames, if any, and push the frames to the subscribers, or wake the subscribers."""
        if not frames:
            return
        first = len(self.frames)
        self.frames.extend(frames)
        for subscriber in self._subscribers:
            subscriber.add(first, frames)
        if self.on_frames is not None:
            self.on_frames()

    def end(self, *, handed_over: bool = False) -> None:
        """End the broadcast in this process and wake the subscribers."""
        self.ended, self.handed_over = True, handed_over
        for subscriber in self._subscribers:
            subscriber.wake(True)


class Subscriber:
    """Place of a subscriber, and the wait, with a single timer: a timer for each event costs as much as encoding the event.

    `place` is the index of the next frame.
    """

    def __init__(self, place: int, pause: float, push: Push | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        self.place, self._pause, self._push = place, pause, push
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

    def add(self, first: int, frames: Sequence[EventFrame]) -> None:
        """Push frames, of which `first` is the index of the first one, or wake the subscriber.

        Only a subscriber that waits for exactly these frames can be passed over. The terminal frame is never pushed: what happens
        at the end of a stream has to be awaited.
        """
        is_waiting = self._woken is not None and not self._woken.done()
        if is_waiting and self.place == first and self._push is not None and self._is_pushed(self._push, frames):
            self.place += len(frames)
            self._since = self._loop.time()
        else:
            self.wake(True)

    def _is_pushed(self, push: Push, frames: Sequence[EventFrame]) -> bool:
        try:
            return frames[-1].type not in TERMINAL and push(frames)
        except Exception:
            # The failure of a client must not fail the run; without `push` it is raised in the client's own task.
            logger.exception("frames could not be pushed")
            self._push = None
            return False

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
