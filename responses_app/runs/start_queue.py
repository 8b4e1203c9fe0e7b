"""Queue of starts: few responses begin in each turn of the event loop, and projects take turns."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from responses_app.observability import events

# Starts in a turn of the event loop. A start takes up to a millisecond, so running streams wait a few milliseconds for a turn.
STARTS_PER_TURN = 4
# Starts of a project that are in progress while another project has begun a response within RECENT_S seconds.
SHARED_STARTS = 2
RECENT_S = 2.0
# The same while a start of another project is in progress or waits.
CONTESTED_STARTS = 1
# A start counts as in progress for at most so many timers of so many seconds. A busy event loop is late at each of these.
HOLD_STEPS, HOLD_STEP_S = 5, 0.01


class Start:
    """Start of a response, which is in progress until `end` is called or its time is over."""

    def __init__(self, on_end: Callable[[], None]) -> None:
        self._on_end: Callable[[], None] | None = on_end
        self._end_later(HOLD_STEPS)

    def end(self) -> None:
        """End the start. Repeated calls do nothing."""
        if self._on_end is not None:
            on_end, self._on_end = self._on_end, None
            self._timer.cancel()
            on_end()

    def _end_later(self, steps: int) -> None:
        if steps == 0:
            self.end()
        else:
            self._timer = asyncio.get_running_loop().call_later(HOLD_STEP_S, self._end_later, steps - 1)


class StartQueue:
    """Queue of the requests of an event loop that begin a response or read. Within a project the first that came is the first to begin.

    Without it, each step of a thousand simultaneous starts would run for all of them before the next step: the first event would
    leave after the last prompt is rendered, and running streams and the starts of other projects would wait meanwhile.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._left = STARTS_PER_TURN
        # Requests that wait, by project. The first project that may begin is next, and goes to the end.
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        self._in_progress: Counter[str] = Counter()
        # Time of the last start, by project, in the order of time.
        self._last_start_at: dict[str, float] = {}
        self._is_scheduled = False

    @asynccontextmanager
    async def turn(self, project: str, *, is_response: bool = True) -> AsyncIterator[None]:
        """Begin a response of `project`, or a request that reads, when the turn comes.

        The start is in progress for the context, at most for the hold time.
        A short response thus counts to its end: the commit and the answer at its end take the event loop as long as its beginning.
        """
        asked = self._clock()
        await self._wait(project)
        if is_response:
            events.started(self._clock() - asked)
        start = Start(lambda: self._on_end(project))
        try:
            yield
        finally:
            start.end()

    async def _wait(self, project: str) -> None:
        """Return when a request of `project` may begin: at once if no more than STARTS_PER_TURN begin in this turn of the loop."""
        self._schedule()
        if self._left and not self._waiting and self._may_begin(project):
            self._begin(project)
            return
        future = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(project, deque()).append(future)
        try:
            await future
        except asyncio.CancelledError:
            if not future.cancelled():
                self._on_end(project)
            raise

    def _may_begin(self, project: str) -> bool:
        if any(len(names) > (project in names) for names in (self._in_progress, self._waiting)):
            return self._in_progress[project] < CONTESTED_STARTS
        return self._in_progress[project] < SHARED_STARTS or not self._has_neighbors(project)

    def _has_neighbors(self, project: str) -> bool:
        """Return whether another project has begun a response within RECENT_S seconds."""
        while self._last_start_at and next(iter(self._last_start_at.values())) <= self._clock() - RECENT_S:
            del self._last_start_at[next(iter(self._last_start_at))]
        return len(self._last_start_at) > (project in self._last_start_at)

    def _begin(self, project: str) -> None:
        self._left -= 1
        self._in_progress[project] += 1
        self._last_start_at.pop(project, None)
        self._last_start_at[project] = self._clock()

    def _on_end(self, project: str) -> None:
        self._in_progress[project] -= 1
        if not self._in_progress[project]:
            del self._in_progress[project]
        if self._waiting:
            self._schedule()

    def _schedule(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            asyncio.get_running_loop().call_soon(self._on_turn)

    def _on_turn(self) -> None:
        """Let the next requests begin. Repeat while requests have begun in this turn of the loop."""
        self._left = STARTS_PER_TURN
        while self._left and (project := next(filter(self._may_begin, self._waiting), None)) is not None:
            self._begin_next(project)
        self._is_scheduled = False
        if self._left < STARTS_PER_TURN:
            self._schedule()

    def _begin_next(self, project: str) -> None:
        """Let the first waiting request of `project` begin. A client that has disconnected meanwhile takes no place."""
        futures = self._waiting.pop(project)
        while futures and futures[0].done():
            futures.popleft()
        if futures:
            self._begin(project)
            futures.popleft().set_result(None)
        if futures:
            self._waiting[project] = futures
