"""Admission control: how much one process works on at a time, counted from before the planning to the end."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum

from asgiref.sync import sync_to_async
from django.conf import settings

from responses_app.errors import RateLimited
from responses_app.store.cluster import leases

# While another project has asked within the last ten minutes, no project takes the last eighth of the places, unless it holds
# less than an eighth itself. Otherwise one project with many requests would have all others answered 429.
RECENT_S = 600.0
SHARE = 8


class Kind(StrEnum):
    """The limit that a request counts for."""

    FOREGROUND = "foreground"
    BACKGROUND = "background"
    # A background response without room, until its row tells all processes that it waits.
    QUEUED = "queued"


@dataclass(slots=True)
class Place:
    """A place in the count of one kind of work."""

    kind: Kind
    _counts: Counter[Kind]
    _by_project: Counter[str] = field(default_factory=Counter)
    _project: str = ""
    _taken: bool = True

    def release(self) -> None:
        """Release the place. Repeated calls do nothing."""
        if self._taken:
            self._taken = False
            self._counts[self.kind] -= 1
            self._by_project[self._project] -= 1
            if not self._by_project[self._project]:
                del self._by_project[self._project]


@dataclass(slots=True)
class Admission:
    """The places of one process that are taken."""

    counts: Counter[Kind] = field(default_factory=Counter)
    by_project: Counter[str] = field(default_factory=Counter)
    clock: Callable[[], float] = time.monotonic
    _asked_at: dict[str, float] = field(default_factory=dict)

    def admit(self, project: str) -> Place:
        """Take a place in the foreground. Raises Busy if RESPONSES_MAX_CONCURRENT are taken, or the project's share of them."""
        limit = settings.RESPONSES_MAX_CONCURRENT
        kept = limit // SHARE if self._has_neighbors(project) else 0
        taken = self.counts[Kind.FOREGROUND]
        if taken >= limit or (taken >= limit - kept and self.by_project[project] >= kept):
            raise RateLimited(f"{taken} responses are being generated, which is the limit. Try again in a moment.")
        return self.take(Kind.FOREGROUND, project)

    @contextmanager
    def admitted(self, project: str) -> Iterator[None]:
        """Hold a place in the foreground meanwhile. Raises Busy."""
        place = self.admit(project)
        try:
            yield
        finally:
            place.release()

    async def admit_background(self, *, queue: bool) -> Place:
        """Take a place in the background, or in the queue if there is no room or `queue` is true.

        Raises Busy if RESPONSES_MAX_QUEUED are taken, those that wait in all processes included.
        """
        count = self.counts[Kind.BACKGROUND] + self.counts[Kind.QUEUED]
        queue = queue or self.background_room < 1
        place = self.take(Kind.QUEUED if queue else Kind.BACKGROUND)
        try:
            if queue:
                count += await sync_to_async(leases.waiting)()
            if count >= settings.RESPONSES_MAX_QUEUED:
                raise RateLimited(
                    f"{count} responses are queued or generated in the background, which is the limit. Try again in a moment."
                )
        except BaseException:
            place.release()
            raise
        return place

    def take(self, kind: Kind, project: str = "") -> Place:
        """Take a place whatever the limit is, as for a response that another process has begun."""
        self.counts[kind] += 1
        self.by_project[project] += 1
        return Place(kind, self.counts, self.by_project, project)

    def _has_neighbors(self, project: str) -> bool:
        """Whether another project has asked within RECENT_S."""
        now = self.clock()
        self._asked_at[project] = now
        if len(self._asked_at) > 1 and now - min(self._asked_at.values()) > RECENT_S:
            self._asked_at = {name: at for name, at in self._asked_at.items() if now - at <= RECENT_S}
        return len(self._asked_at) > 1

    @property
    def background_room(self) -> int:
        """How many more background responses may begin in this process."""
        return int(settings.RESPONSES_MAX_BACKGROUND) - self.counts[Kind.BACKGROUND]
