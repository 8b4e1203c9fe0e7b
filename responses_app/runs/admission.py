"""Admission control: how much one process works on at a time, counted from before the planning to the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum

from asgiref.sync import sync_to_async
from django.conf import settings

from responses_app.errors import Busy
from responses_app.store import leases


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
    _taken: bool = True

    def release(self) -> None:
        """Give the place back. A second call does nothing."""
        if self._taken:
            self._taken = False
            self._counts[self.kind] -= 1


@dataclass(slots=True)
class Admission:
    """The places of one process that are taken."""

    counts: Counter[Kind] = field(default_factory=Counter)

    def admit(self) -> Place:
        """Take a place in the foreground. Raises Busy if RESPONSES_MAX_CONCURRENT are taken."""
        limit = settings.RESPONSES_MAX_CONCURRENT
        if self.counts[Kind.FOREGROUND] >= limit:
            raise Busy(f"{limit} responses are being generated, which is the limit. Try again in a moment.")
        return self.take(Kind.FOREGROUND)

    @contextmanager
    def admitted(self) -> Iterator[None]:
        """Hold a place in the foreground meanwhile. Raises Busy."""
        place = self.admit()
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
                raise Busy(
                    f"{count} responses are queued or generated in the background, which is the limit. Try again in a moment."
                )
        except BaseException:
            place.release()
            raise
        return place

    def take(self, kind: Kind) -> Place:
        """Take a place whatever the limit is, as for a response that another process has begun."""
        self.counts[kind] += 1
        return Place(kind, self.counts)

    @property
    def background_room(self) -> int:
        """How many more background responses may begin in this process."""
        return int(settings.RESPONSES_MAX_BACKGROUND) - self.counts[Kind.BACKGROUND]
