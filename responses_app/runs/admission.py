"""Admission control: limits of concurrent work of a process, counted from before the planning to the end."""

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
from responses_app.observability import events
from responses_app.store.cluster import leases

# While another project sent a request within the last ten minutes, no project takes the last eighth of the places, unless it holds
# less than an eighth itself. Otherwise one project with many requests would cause a 429 for all others.
RECENT_S = 600.0
SHARE = 8


class Kind(StrEnum):
    """Kind of work. Each kind has a separate limit."""

    FOREGROUND = "foreground"
    BACKGROUND = "background"
    # A background response without a free place, until its row in the database shows to all processes that it waits.
    QUEUED = "queued"


@dataclass(slots=True)
class Place:
    """Place in the count of a kind of work."""

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
            events.runs_changed(self._counts.total())
            self._by_project[self._project] -= 1
            if not self._by_project[self._project]:
                del self._by_project[self._project]


@dataclass(slots=True)
class Admission:
    """Counts of the places that are taken in a process."""

    counts: Counter[Kind] = field(default_factory=Counter)
    by_project: Counter[str] = field(default_factory=Counter)
    clock: Callable[[], float] = time.monotonic
    _last_request_at: dict[str, float] = field(default_factory=dict)

    def admit(self, project: str) -> Place:
        """Take a place in the foreground. Raises RateLimited if RESPONSES_MAX_CONCURRENT are taken, or the share of the project."""
        limit = settings.RESPONSES_MAX_CONCURRENT
        reserved = limit // SHARE if self._has_neighbors(project) else 0
        taken = self.counts[Kind.FOREGROUND]
        if taken >= limit or (taken >= limit - reserved and self.by_project[project] >= reserved):
            raise RateLimited(f"{taken} responses are being generated, which is the limit. Try again in a moment.")
        return self.take(Kind.FOREGROUND, project)

    @contextmanager
    def admitted(self, project: str) -> Iterator[None]:
        """Take a place in the foreground for the duration of the context. Raises RateLimited."""
        place = self.admit(project)
        try:
            yield
        finally:
            place.release()

    async def admit_background(self, *, queue: bool) -> Place:
        """Take a place in the background, or in the queue if none is free or `queue` is true.

        Raises RateLimited if RESPONSES_MAX_QUEUED places are taken; responses that wait in all processes count.
        """
        count = self.counts[Kind.BACKGROUND] + self.counts[Kind.QUEUED]
        queue = queue or self.free_background_slots < 1
        place = self.take(Kind.QUEUED if queue else Kind.BACKGROUND)
        try:
            if queue:
                count += await sync_to_async(leases.count_waiting)()
            if count >= settings.RESPONSES_MAX_QUEUED:
                raise RateLimited(
                    f"{count} responses are queued or generated in the background, which is the limit. Try again in a moment."
                )
        except BaseException:
            place.release()
            raise
        return place

    def take(self, kind: Kind, project: str = "") -> Place:
        """Take a place without regard to the limit, as for a response that another process began."""
        self.counts[kind] += 1
        events.runs_changed(self.counts.total())
        self.by_project[project] += 1
        return Place(kind, self.counts, self.by_project, project)

    def _has_neighbors(self, project: str) -> bool:
        """Return whether another project sent a request within RECENT_S seconds."""
        now = self.clock()
        self._last_request_at[project] = now
        if len(self._last_request_at) > 1 and now - min(self._last_request_at.values()) > RECENT_S:
            self._last_request_at = {name: at for name, at in self._last_request_at.items() if now - at <= RECENT_S}
        return len(self._last_request_at) > 1

    @property
    def free_background_slots(self) -> int:
        """Number of background responses that may still begin in this process."""
        return int(settings.RESPONSES_MAX_BACKGROUND) - self.counts[Kind.BACKGROUND]
