"""What listeners see of a run in this process: the frames so far, and when there are more."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence

from responses_app.store.records import Frame


class Feed:
    """Frames in the order of their numbers, from 0. Any number of listeners read them, each at its own pace.

    `ended` says that nothing more comes here; `moved` that this is so although the response has not ended: another process,
    or this one a little later, goes on with it, and whoever listens finds the rest in the log. `shown`, if set, is called
    whenever there is more.
    """

    def __init__(self, frames: Sequence[Frame] = ()) -> None:
        self.frames: list[Frame] = list(frames)
        self.ended = self.moved = False
        self.shown: Callable[[], None] | None = None
        self._listeners: set[asyncio.Future[bool]] = set()

    async def listen(self, after: int = -1, pause: float = 10.0) -> AsyncGenerator[Frame | None, None]:
        """Frames with numbers above `after` up to the terminal one; None after each `pause` seconds of silence."""
        place = after + 1
        while True:
            while place < len(self.frames):
                place += 1
                yield self.frames[place - 1]
            if self.ended:
                return
            if not await self._news(pause):
                yield None

    def show(self, frames: Sequence[Frame]) -> None:
        """There is more."""
        self.frames.extend(frames)
        self._wake()
        if self.shown is not None:
            self.shown()

    def end(self, *, moved: bool = False) -> None:
        """Nothing more comes here."""
        self.ended, self.moved = True, moved
        self._wake()

    async def _news(self, pause: float) -> bool:
        """Wait for a frame or the end; False after `pause` seconds without either. Cheaper per event than asyncio.wait_for."""
        loop = asyncio.get_running_loop()
        news: asyncio.Future[bool] = loop.create_future()
        timer = loop.call_later(pause, _tell, news, False)
        self._listeners.add(news)
        try:
            return await news
        finally:
            timer.cancel()
            self._listeners.discard(news)

    def _wake(self) -> None:
        for news in self._listeners:
            _tell(news, True)


def _tell(news: asyncio.Future[bool], value: bool) -> None:
    if not news.done():
        news.set_result(value)
