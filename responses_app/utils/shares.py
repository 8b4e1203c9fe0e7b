"""Shares of projects: a limited number of places of which no project takes the last eighth. Projects that wait take turns."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from weakref import WeakKeyDictionary

SHARE = 8
WAIT_S = 60.0
MAX_WAITING = 64
HOLD_STEPS = 20


class ShareExceeded(Exception):
    """The project has its share of the places, and none became free in time, or too many callers of the project wait."""


def reserved_places(places: int) -> int:
    """Return the number of places for projects that hold fewer: an eighth, at least one. A single place is not reserved."""
    return 0 if places < 2 else max(places // SHARE, 1)


class ProjectShares:
    """`places` for the projects of an event loop. `wait_s` is the longest wait for a place; None means without limit.

    Of the projects that wait, the one with the fewest places is next, then the one whose last turn is the longest ago.
    """

    def __init__(self, places: int, *, max_waiting: int = MAX_WAITING, wait_s: float | None = WAIT_S) -> None:
        self.places, self._max_waiting, self._wait_s = places, max_waiting, wait_s
        self._held: Counter[str] = Counter()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        # Number of the last turn, by project.
        self._turns: dict[str, int] = {}
        self._turn = 0

    @property
    def has_free_place(self) -> bool:
        """Return whether a place is free, for any project."""
        return self._held.total() < self.places

    def may_take(self, project: str) -> bool:
        """Return whether `project` may take a place now."""
        free, reserved = self.places - self._held.total(), reserved_places(self.places)
        return free > reserved or (free > 0 and self._held[project] < reserved)

    def full_projects(self) -> list[str]:
        """Return the projects that hold places and may take no other."""
        return [project for project in self._held if not self.may_take(project)]

    def take(self, project: str) -> None:
        """Take a place without regard to the share."""
        self._held[project] += 1
        self._turn += 1
        self._turns[project] = self._turn

    def release(self, project: str) -> None:
        """Release a place, and give it to a project that waits."""
        self._held[project] -= 1
        if not self._held[project]:
            del self._held[project]
        self._wake()

    @asynccontextmanager
    async def place(self, project: str, hold_s: float | None = None) -> AsyncIterator[None]:
        """Hold a place during the context, after a wait for one. Raises ShareExceeded.

        With `hold_s` the place is free again after so many seconds, or later if the event loop is busy.
        """
        await self._acquire(project)
        held = [project]
        if hold_s is not None:
            self._release_later(held, hold_s / HOLD_STEPS)
        try:
            yield
        finally:
            self._release_once(held)

    def _release_later(self, held: list[str], step_s: float, steps: int = HOLD_STEPS) -> None:
        """Release the place after `steps` timers of `step_s` seconds. A busy event loop is late at each of these."""
        if steps == 0:
            self._release_once(held)
        elif held:
            asyncio.get_running_loop().call_later(step_s, self._release_later, held, step_s, steps - 1)

    def _release_once(self, held: list[str]) -> None:
        if held:
            self.release(held.pop())

    async def _acquire(self, project: str) -> None:
        waiting = self._waiting.get(project)
        if not waiting and self.may_take(project):
            self.take(project)
            return
        if waiting is not None and len(waiting) >= self._max_waiting:
            raise ShareExceeded
        future = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(project, deque()).append(future)
        try:
            async with asyncio.timeout(self._wait_s):
                await future
        except BaseException as error:
            self._leave(project, future)
            if isinstance(error, TimeoutError):
                raise ShareExceeded from None
            raise

    def _leave(self, project: str, future: asyncio.Future[None]) -> None:
        """End a wait without using the place, which the caller may have got in the meantime."""
        if future.done() and not future.cancelled():
            self.release(project)
        else:
            self._remove(project, future)

    def _wake(self) -> None:
        while ready := [project for project in self._waiting if self.may_take(project)]:
            project = min(ready, key=lambda one: (self._held[one], self._turns.get(one, 0)))
            future = self._waiting[project][0]
            self._remove(project, future)
            # A cancelled caller has not left yet.
            if not future.done():
                self.take(project)
                future.set_result(None)

    def _remove(self, project: str, future: asyncio.Future[None]) -> None:
        waiting = self._waiting.get(project, deque())
        if future in waiting:
            waiting.remove(future)
            if not waiting:
                del self._waiting[project]


_shares: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, ProjectShares]] = WeakKeyDictionary()


def shares_of(name: str, places: int, *, max_waiting: int = MAX_WAITING, wait_s: float | None = WAIT_S) -> ProjectShares:
    """Return the shares `name` of the running event loop, which the first call makes."""
    by_name = _shares.setdefault(asyncio.get_running_loop(), {})
    if name not in by_name:
        by_name[name] = ProjectShares(places, max_waiting=max_waiting, wait_s=wait_s)
    return by_name[name]
