"""Pool engine: several engines of a model, sticky by session, with health checks and limits on imbalance."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from time import monotonic

from responses_app.engine_interface import (
    Chunk,
    Constraint,
    Engine,
    EngineLacksModel,
    EngineMoved,
    EngineOverloaded,
    EngineUnavailable,
    EngineUnreachable,
    GenerateRequest,
    prefill_by_generating,
)
from responses_app.engines.pool.member import MemberStatus, PoolMember, choose
from responses_app.engines.pool.start import check_same_model, start_members

logger = logging.getLogger("responses.engines")

# Pause between two looks at the members whose health check is due.
WATCH_S = 0.5


class EnginePool:
    """Pool of engines of a model, by URL without a key.

    A request goes to the engine that its session prefers (`rendezvous`), so that all turns of a chain find the same prefix cache,
    in every process and on every host. An engine that fails is passed over until a health check succeeds. `start` succeeds with
    one engine; the others are started later. `clock` and `sleep` count in seconds.
    """

    counts_cheaply = False

    def __init__(
        self,
        engines: Mapping[str, Engine],
        *,
        start_wait: float = 0.0,
        clock: Callable[[], float] = monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.has_xgrammar = all(engine.has_xgrammar for engine in engines.values())
        self._members = [PoolMember(name, engine, clock) for name, engine in engines.items()]
        self._start_wait, self._clock, self._sleep = start_wait, clock, sleep
        self._watcher: asyncio.Task[None] | None = None

    @property
    def max_model_len(self) -> int:
        """Maximum number of tokens of prompt and output together. Raises EngineUnavailable before the first connection."""
        return self._started_engine().max_model_len

    @property
    def supports_images(self) -> bool:
        """True if the model accepts images, as far as the started engines know."""
        return self._started_engine().supports_images

    @property
    def refusal_s(self) -> float:
        """Seconds until an engine takes requests again, of those that refuse requests; 0 if an engine takes requests now."""
        return min((member.engine.refusal_s for member in self._available()), default=0.0)

    @property
    def statuses(self) -> list[MemberStatus]:
        """Status of each engine, for operators."""
        return [member.status for member in self._members]

    @property
    def lacks_model(self) -> bool:
        """True if no engine serves the model any more, although one runs."""
        return not self._available() and any(getattr(member.engine, "lacks_model", False) for member in self._members)

    async def start(self) -> None:
        """Start the engines. Raises EngineUnavailable if no engine starts, and if two engines do not serve the same model."""
        try:
            await start_members(self._members, self._start_wait, self._clock, self._sleep)
        except BaseException:
            await self.close()
            raise
        self._watcher = self._watcher or asyncio.create_task(self._watch(), name="engine pool")

    async def close(self) -> None:
        """Close all engines."""
        watcher, self._watcher = self._watcher, None
        if watcher is not None:
            watcher.cancel()
            await asyncio.wait({watcher})
        await asyncio.gather(*(member.close() for member in self._members))

    async def generate(self, request: GenerateRequest) -> AsyncGenerator[Chunk, None]:
        """Generate chunks, see `Engine.generate`. Raises EngineMoved if the engine dies and another engine can continue.

        An engine that fails before the first chunk is replaced by the next engine in the order of the session. Each engine is
        tried once.
        """
        tried = dict[str, EngineUnavailable]()
        while True:
            member = self._choose(request, tried)
            has_chunks = False
            try:
                async with aclosing(member.generate(request)) as chunks:
                    async for chunk in chunks:
                        has_chunks = True
                        yield chunk
                return
            except EngineUnavailable as error:
                tried[member.name] = error
                is_out = await self._examine(member, error)
                if has_chunks and is_out and self._available():
                    raise EngineMoved(str(error)) from error
                if has_chunks:
                    raise

    async def prefill(self, request: GenerateRequest) -> None:
        """Prefill by a generation of a single token, on the engine that the session prefers."""
        await prefill_by_generating(self, request)

    async def count_tokens(self, prompt: Sequence[int], images: Sequence[bytes]) -> int:
        """Count the prompt tokens, see `Engine.count_tokens`, on the engine with the fewest requests."""
        for member in sorted(self._available(), key=lambda member: member.in_flight):
            try:
                return await member.engine.count_tokens(prompt, images)
            except EngineUnavailable as error:
                await self._examine(member, error)
        raise EngineUnavailable(f"none of {self._names} answers")

    def check_constraint(self, constraint: Constraint) -> None:
        """Reject a constraint that an engine is known to reject. Raises RequestRejected."""
        for member in self._members:
            member.engine.check_constraint(constraint)

    async def is_healthy(self) -> bool:
        """Return True once an engine is healthy. Engines that are out are checked only without a healthy one."""
        up = self._available()
        out = [member for member in self._members if member not in up]
        return await self._is_one_healthy(up) or await self._is_one_healthy(out)

    async def _is_one_healthy(self, members: Sequence[PoolMember]) -> bool:
        """Check the engines at once, as the check of one that hangs takes seconds."""
        checks = [asyncio.create_task(self._check(member)) for member in members]
        try:
            for check in asyncio.as_completed(checks):
                if await check:
                    return True
            return False
        finally:
            for task in checks:
                task.cancel()

    @property
    def _names(self) -> str:
        return ", ".join(member.name for member in self._members)

    def _started_engine(self) -> Engine:
        for member in self._members:
            if member.has_started:
                return member.engine
        raise EngineUnavailable(f"none of {self._names} is connected yet")

    def _available(self) -> list[PoolMember]:
        return [member for member in self._members if member.availability.is_up]

    def _choose(self, request: GenerateRequest, tried: Mapping[str, EngineUnavailable]) -> PoolMember:
        """Return the engine for a request, other than those in `tried`. Raises EngineUnavailable, EngineOverloaded."""
        up = self._available()
        free = [member for member in up if member.name not in tried and not member.engine.refusal_s]
        if (member := choose(free, request.session or request.id)) is not None:
            return member
        if refusal_s := self.refusal_s:
            raise EngineOverloaded(f"{', '.join(member.name for member in up)} refuse requests", refusal_s)
        reasons = "; ".join(f"{name}: {error}" for name, error in tried.items())
        kind = EngineLacksModel if self.lacks_model else EngineUnavailable
        raise kind(f"none of {self._names} answers. {reasons}".rstrip(". "))

    async def _examine(self, member: PoolMember, error: EngineUnavailable) -> bool:
        """Take an engine out that has failed, unless it refuses requests or is healthy. Return whether the engine is out.

        A request that ends with an error on every healthy engine must not take all engines out.
        """
        if isinstance(error, EngineOverloaded):
            logger.info("engine %s refuses a request: %s", member.name, error)
            return False
        if not isinstance(error, EngineUnreachable) and await member.engine.is_healthy():
            logger.warning("engine %s has failed with a request and is healthy: %s", member.name, error)
            return False
        self._take_out(member, error)
        return True

    def _take_out(self, member: PoolMember, reason: object) -> None:
        was_up = member.availability.is_up
        member.availability.fail()
        if was_up:
            logger.warning("engine %s is out: %s; %d of %d are left", member.name, reason, *self._share())

    def _put_back(self, member: PoolMember) -> None:
        was_up = member.availability.is_up
        member.availability.restore()
        if not was_up:
            logger.info("engine %s is back; %d of %d are available", member.name, *self._share())

    def _share(self) -> tuple[int, int]:
        return len(self._available()), len(self._members)

    async def _watch(self) -> None:
        """Check idle engines and engines that are out, each when the health check is due."""
        while True:
            await self._sleep(WATCH_S)
            self._leave_silent()
            due = [member for member in self._members if member.availability.is_due]
            await asyncio.gather(*(self._check(member) for member in due))

    def _leave_silent(self) -> None:
        """Move the requests of engines that have sent nothing for too long, while another engine is not silent."""
        up = self._available()
        silent = [member for member in up if member.is_silent]
        if len(silent) < len(up):
            for member in silent:
                member.move_requests()

    async def _check(self, member: PoolMember) -> bool:
        """Check the health of an engine, and start an engine that was away at the start."""
        try:
            is_healthy = await member.start_or_check()
            check_same_model(self._members)
        except Exception as error:  # A server may answer anything, and must not end the checks of the others.
            member.has_started = False
            self._take_out(member, error)
            return False
        if is_healthy:
            self._put_back(member)
        else:
            self._take_out(member, "health check failed")
        return is_healthy
