"""Queue of starts: few requests begin in each turn of the event loop, in the order in which they came."""

from __future__ import annotations

import asyncio
from collections import deque

# Starts in a turn of the event loop. A start takes up to a millisecond, so running streams wait a few milliseconds for a turn.
STARTS_PER_TURN = 4


class StartQueue:
    """Queue of the requests of an event loop that begin a response.

    Without it, each step of a thousand simultaneous starts would run for all of them before the next step: the first event would
    leave after the last prompt is rendered, and running streams would wait meanwhile.
    """

    def __init__(self) -> None:
        self._left = STARTS_PER_TURN
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._is_scheduled = False

    async def wait(self) -> None:
        """Return when the request may begin: at once, unless STARTS_PER_TURN others have begun in this turn of the loop."""
        loop = asyncio.get_running_loop()
        if not self._is_scheduled:
            self._is_scheduled = True
            loop.call_soon(self._turn)
        if self._left and not self._waiting:
            self._left -= 1
            return
        may_begin = loop.create_future()
        self._waiting.append(may_begin)
        await may_begin

    def _turn(self) -> None:
        """Let the next requests begin; repeat while requests wait or have begun in this turn."""
        self._left = STARTS_PER_TURN
        while self._left and self._waiting:
            may_begin = self._waiting.popleft()
            # A client that has disconnected meanwhile takes no place.
            if not may_begin.done():
                may_begin.set_result(None)
                self._left -= 1
        self._is_scheduled = self._left < STARTS_PER_TURN
        if self._is_scheduled:
            asyncio.get_running_loop().call_soon(self._turn)
