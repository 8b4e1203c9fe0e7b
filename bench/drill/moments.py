"""Moments at which a blow hurts most: the clients tell when they come, and a blow may have been waiting for one."""

from __future__ import annotations

import asyncio

from bench.drill.parts import Web

# A request is on its way to be accepted; one to cancel, or to delete; a response is about to end; it holds a conversation.
MOMENTS = ("accept", "cancel", "delete", "end", "conversation")


class Moments:
    """`tell` costs nothing where nobody waits."""

    def __init__(self) -> None:
        self._waiting: dict[str, asyncio.Future[Web]] = {}

    def tell(self, kind: str, web: Web | None) -> None:
        """It is now, in that process or on the way to it."""
        waiting = self._waiting.pop(kind, None)
        if web is not None and waiting is not None and not waiting.done():
            waiting.set_result(web)

    async def wait(self, kind: str, limit: float) -> Web | None:
        """The process at which the next such moment comes; None if none comes within the limit."""
        waiting = self._waiting[kind] = asyncio.get_running_loop().create_future()
        try:
            return await asyncio.wait_for(waiting, limit)
        except TimeoutError:
            return None
        finally:
            self._waiting.pop(kind, None)
