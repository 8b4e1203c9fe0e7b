"""Member of a pool: an engine with availability and counts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from hashlib import blake2b
from time import monotonic
from urllib.parse import urlsplit

from responses_app.engine_interface import Chunk, Engine, GenerateRequest
from responses_app.utils.backoff import Backoff

# Pauses between attempts to reach an engine that is out.
PAUSES_S = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0)
# Pause between health checks of an engine without requests.
IDLE_CHECK_S = 5.0


class Availability:
    """Availability of an engine, which is out until `restore`. `clock` returns seconds."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock, self._backoff = clock, Backoff(PAUSES_S)
        self.is_up = False
        self._next_check_s = clock()

    @property
    def is_due(self) -> bool:
        """Check whether the time of the next health check has come."""
        return self._clock() >= self._next_check_s

    def fail(self) -> None:
        """Take the engine out until the next health check, after a longer pause than before."""
        self.is_up = False
        self._next_check_s = self._clock() + self._backoff.next_pause_s()

    def restore(self) -> None:
        """Put the engine back after a health check. The pauses begin anew only with an answer (`answer`)."""
        self.is_up = True
        self._next_check_s = self._clock() + IDLE_CHECK_S

    def answer(self) -> None:
        """Record an answer to a request."""
        self._backoff.reset()
        self._next_check_s = self._clock() + IDLE_CHECK_S


def ranking(key: str, names: Sequence[str]) -> list[str]:
    """Return `names` in the order of preference for `key`.

    The order of two names does not depend on the other names: without a name only its keys move, each to the next in its order.
    """
    return sorted(names, key=lambda name: _weight(key, name), reverse=True)


def _weight(key: str, name: str) -> bytes:
    return blake2b(f"{name}\0{key}".encode("utf-8", "surrogatepass"), digest_size=8).digest()


# An engine is overloaded with more than FACTOR times the mean of requests in flight, and MARGIN.
FACTOR = 1.25
MARGIN = 4


@dataclass(frozen=True, slots=True)
class MemberStatus:
    """Status of a member for operators. `requests` counts all requests since the start, those `in_flight` included."""

    name: str
    is_up: bool
    in_flight: int
    requests: int


class PoolMember:
    """Member of a pool. `name` is the URL without a key; `in_flight` counts the requests of this process."""

    def __init__(self, name: str, engine: Engine, clock: Callable[[], float] = monotonic) -> None:
        self.name, self.engine = name, engine
        self.availability = Availability(clock)
        self.has_started = False
        self.in_flight = self.requests = 0
        self._attempt: asyncio.Task[bool] | None = None

    @property
    def status(self) -> MemberStatus:
        """Status for operators."""
        return MemberStatus(self.name, self.availability.is_up, self.in_flight, self.requests)

    async def generate(self, request: GenerateRequest) -> AsyncGenerator[Chunk, None]:
        """Generate chunks, see `Engine.generate`, and count the request."""
        self.in_flight += 1
        self.requests += 1
        request.used_engines.append(urlsplit(self.name).netloc)
        try:
            async with aclosing(self.engine.generate(request)) as chunks:
                async for chunk in chunks:
                    self.availability.answer()
                    yield chunk
        finally:
            self.in_flight -= 1

    @property
    def is_silent(self) -> bool:
        """Return whether the engine has sent nothing for too long, as far as the engine watches for that."""
        silence = getattr(self.engine, "silence", None)
        return silence is not None and bool(silence.is_too_long)

    def move_requests(self) -> None:
        """End the waits of a silent engine's requests, which go to other engines of the pool."""
        getattr(self.engine, "silence").move_requests()  # noqa: B009

    async def start_or_check(self) -> bool:
        """Start the engine, or check the health of a started engine. Raises EngineUnavailable if the start fails.

        Concurrent callers share the same attempt.
        """
        if self._attempt is None or self._attempt.done():
            self._attempt = asyncio.create_task(self._start_or_check(), name=f"check of {self.name}")
        return await asyncio.shield(self._attempt)

    async def close(self) -> None:
        """Abandon an attempt under way and close the engine."""
        if self._attempt is not None:
            self._attempt.cancel()
            await asyncio.wait({self._attempt})
        await self.engine.close()

    async def _start_or_check(self) -> bool:
        if not self.has_started:
            await self.engine.start()
            self.has_started = True
        return await self.engine.is_healthy()


def choose(members: Sequence[PoolMember], session: str) -> PoolMember | None:
    """Return the member for a session: the first in the order of the session that is not overloaded; None without members."""
    by_name = {member.name: member for member in members}
    mean = (sum(member.in_flight for member in members) + 1) / max(len(members), 1)
    in_order = [by_name[name] for name in ranking(session, list(by_name))]
    return next((member for member in in_order if member.in_flight < FACTOR * mean + MARGIN), None)
