"""What listeners see of a run in this process: the frames so far, and when there are more."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import TypeAlias

from responses_app.store.log.records import EventFrame

Rest: TypeAlias = Callable[[int], AsyncGenerator[EventFrame | None, None]]


class Broadcast:
    """Frames in the order of their numbers, from 0. Any number of listeners read them, each at its own pace.

    `ended` says that nothing more comes here; `moved` that this is so although the response has not ended: another process,
    or this one a little later, goes on with it, and whoever listens finds the rest in the log. `shown`, if set, is called
    whenever there is more.
    """

    def __init__(self, frames: Sequence[EventFrame] = ()) -> None:
        self.frames: list[EventFrame] = list(frames)
        self.ended = self.handed_over = False
        self.shown: Callable[[], None] | None = None
        self._ears: set[Subscriber] = set()

    async def listen(
        self, after: int = -1, pause: float = 10.0, rest: Rest | None = None
    ) -> AsyncGenerator[EventFrame | None, None]:
        """Frames with numbers above `after` up to the terminal one; None after each `pause` seconds of silence.

        `rest` is asked for what is behind a number if the run has moved.
        """
        place, ear = after + 1, Subscriber(pause)
        self._ears.add(ear)
        try:
            while place < len(self.frames) or not self.ended:
                if place < len(self.frames):
                    place += 1
                    yield self.frames[place - 1]
                elif not await ear.wait():
                    yield None
        finally:
            self._ears.discard(ear)
            ear.close()
        if self.handed_over and rest is not None:
            async with aclosing(rest(place - 1)) as frames:
                async for frame in frames:
                    yield frame

    def broadcast(self, frames: Sequence[EventFrame]) -> None:
        """There is more."""
        self.frames.extend(frames)
        self._wake()
        if self.shown is not None:
            self.shown()

    def end(self, *, handed_over: bool = False) -> None:
        """Nothing more comes here."""
        self.ended, self.handed_over = True, handed_over
        self._wake()

    def _wake(self) -> None:
        for ear in self._ears:
            ear.wake(True)


class Subscriber:
    """One listener's wait, with one timer for its whole life: a timer for each event costs as much as encoding it."""

    def __init__(self, pause: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._pause = pause
        self._news: asyncio.Future[bool] | None = None
        self._since = 0.0
        self._timer: asyncio.TimerHandle | None = None

    async def wait(self) -> bool:
        """Wait for a frame or the end; False after a pause without either."""
        self._since = self._loop.time()
        self._news = self._loop.create_future()
        if self._timer is None:
            self._timer = self._loop.call_at(self._since + self._pause, self._deliver)
        return await self._news

    def wake(self, value: bool) -> None:
        """There is news, or there has been none for long enough."""
        if self._news is not None and not self._news.done():
            self._news.set_result(value)

    def close(self) -> None:
        """Nobody listens any more."""
        if self._timer is not None:
            self._timer.cancel()

    def _deliver(self) -> None:
        """Whether it has been silent for the whole pause; if not, look again when it would have been."""
        due = self._since + self._pause
        if due <= self._loop.time() or self._news is None:
            self._timer = None
            self.wake(False)
        else:
            self._timer = self._loop.call_at(due, self._deliver)
