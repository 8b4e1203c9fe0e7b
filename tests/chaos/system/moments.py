"""Moments at which a fault does most harm: clients notify of them, and the fault injector waits for one."""

from __future__ import annotations

import asyncio

from tests.chaos.system.processes import WebProcess

# A request is on its way to be accepted; one to cancel, or to delete; a response is about to end; it holds a conversation.
MOMENTS = ("accept", "cancel", "delete", "end", "conversation")


class Moments:
    """Moments by kind; `notify` costs nothing where no task waits."""

    def __init__(self) -> None:
        self._waiting: dict[str, asyncio.Future[WebProcess]] = {}

    def notify(self, kind: str, web: WebProcess | None) -> None:
        """Notify the waiting task that the moment has come for that process."""
        waiting = self._waiting.pop(kind, None)
        if web is not None and waiting is not None and not waiting.done():
            waiting.set_result(web)

    async def wait(self, kind: str, limit: float) -> WebProcess | None:
        """Wait for the next moment of that kind and return the process; None after `limit` seconds."""
        waiting = self._waiting[kind] = asyncio.get_running_loop().create_future()
        try:
            return await asyncio.wait_for(waiting, limit)
        except TimeoutError:
            return None
        finally:
            self._waiting.pop(kind, None)
