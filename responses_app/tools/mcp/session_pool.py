"""Pool of sessions with programs: after a response, a program waits for the next response of the project, which saves its start."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from responses_app.tools.mcp.servers import McpServer

if TYPE_CHECKING:
    from responses_app.tools.mcp.session import McpSession

# Seconds for which a program waits: people have then read the answer and written the next message.
IDLE_LIMIT_S: Final = 120.0
# Programs that wait in a process.
MAX_IDLE: Final = 8


class SessionPool:
    """Open sessions that no run uses, each for at most IDLE_LIMIT_S seconds. A session serves one project, and one run at a time.

    Of more than MAX_IDLE sessions, the oldest of the project with the most is closed.
    """

    def __init__(self, sleep: Callable[[float], Coroutine[Any, Any, None]] = asyncio.sleep) -> None:
        self._sleep = sleep
        # The project of each session, and the task that ends the time; the oldest is first.
        self._idle: dict[McpSession, tuple[str, asyncio.Task[None]]] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def put(self, project: str, session: McpSession) -> None:
        """Keep `session` for the next run of `project`."""
        self._idle[session] = project, _new_task(self._end_later(session))
        if len(self._idle) > MAX_IDLE:
            largest = Counter(owner for owner, _ in self._idle.values()).most_common(1)[0][0]
            self._end(next(one for one, (owner, _) in self._idle.items() if owner == largest))

    def take(self, project: str, server: McpServer) -> McpSession | None:
        """Return the newest open session of `project` with `server`, which the caller must close or put back; None without one."""
        for session, (owner, timer) in [*self._idle.items()][::-1]:
            if owner == project and session.server.identity == server.identity:
                if session.is_open:
                    del self._idle[session]
                    timer.cancel()
                    return session
                self._end(session)
        return None

    async def close(self) -> None:
        """Close all sessions, side by side."""
        for session in [*self._idle]:
            self._end(session)
        await asyncio.gather(*self._closing)

    async def _end_later(self, session: McpSession) -> None:
        await self._sleep(IDLE_LIMIT_S)
        self._end(session)

    def _end(self, session: McpSession) -> None:
        self._idle.pop(session)[1].cancel()
        closing = _new_task(session.close())
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)


def _new_task(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    """Start a task without the context of the run, which has ended."""
    return asyncio.get_running_loop().create_task(work, context=Context())


_by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, SessionPool] = WeakKeyDictionary()


def session_pool() -> SessionPool:
    """Return the pool of the running event loop, which the first call makes."""
    return _by_loop.setdefault(asyncio.get_running_loop(), SessionPool())


def forget_pools() -> None:
    """Forget the pools of all event loops, whose ends end the programs too."""
    _by_loop.clear()
