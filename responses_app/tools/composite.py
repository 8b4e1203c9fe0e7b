"""Composite of the tools of a run: one executor for all server tools."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

from responses_app.dialects.citations.sources import Sources
from responses_app.protocol.deltas import Delta
from responses_app.tools.base import CitingOffer, Json, ToolExecutor, ToolOffer


class CompositeOffer:
    """Offer of several tools."""

    def __init__(self, offers: Sequence[ToolOffer]) -> None:
        self._offers = offers

    @property
    def functions(self) -> list[Json]:
        """Functions of all tools."""
        return [function for offer in self._offers for function in offer.functions]

    @property
    def sources(self) -> Sources | None:
        """Sources of all tools; None if no tool has sources."""
        offered_sources = [
            offer.sources for offer in self._offers if isinstance(offer, CitingOffer) and offer.sources is not None
        ]
        return reduce(Sources.joined, offered_sources) if offered_sources else None

    def opening(self, function: str) -> Delta | None:
        """Return the delta that opens a call of the tool that has `function`; None for functions of the client."""
        openings = (offer.opening(function) for offer in self._offers)
        return next((opening for opening in openings if opening is not None), None)

    def tool_choice(self, choice: str | Json) -> str | Json:
        """Return `choice` with functions in place of the tools. Raises UnsupportedInput for absent tools."""
        for offer in self._offers:
            choice = offer.tool_choice(choice)
        return choice


class CompositeExecutor:
    """Executor of several tools, a `ToolExecutor`. Each item belongs to the first of `executors` that can run the item."""

    def __init__(self, executors: Sequence[ToolExecutor]) -> None:
        self._executors = executors

    async def prepare(self, items: Sequence[Json]) -> None:
        """Prepare all tools."""
        for executor in self._executors:
            await executor.prepare(items)

    def offer(self, items: Sequence[Json]) -> CompositeOffer:
        """Return the offer of all tools."""
        return CompositeOffer([executor.offer(items) for executor in self._executors])

    def openings(self, items: Sequence[Json]) -> list[Delta]:
        """Return the openings of all tools."""
        return [opening for executor in self._executors for opening in executor.openings(items)]

    def can_run(self, item: Json) -> bool:
        """Return True if a tool can run `item`."""
        return self._find(item) is not None

    def counts(self, item: Json) -> bool:
        """Return whether `item` counts for the limits of calls."""
        executor = self._find(item)
        return executor is not None and executor.counts(item)

    def is_repeatable(self, call: Json) -> bool:
        """Return whether `call` may run a second time."""
        return self._of(call).is_repeatable(call)

    async def run(self, call: Json, report: Callable[[Delta], None]) -> Delta:
        """Run `call` by the tool."""
        return await self._of(call).run(call, report)

    def failure(self, call: Json, message: str) -> Delta:
        """Return the delta that closes the item of `call` as failed."""
        return self._of(call).failure(call, message)

    async def close(self) -> None:
        """Close all tools, even if the closing of a tool fails."""
        problems = []
        for executor in self._executors:
            try:
                await executor.close()
            except Exception as error:
                problems.append(error)
        if problems:
            raise problems[0]

    def _find(self, item: Json) -> ToolExecutor | None:
        return next((executor for executor in self._executors if executor.can_run(item)), None)

    def _of(self, call: Json) -> ToolExecutor:
        executor = self._find(call)
        if executor is None:
            raise LookupError(f"no tool runs items of type {call['type']!r}")
        return executor
