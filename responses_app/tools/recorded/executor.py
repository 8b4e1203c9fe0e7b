"""Executor of a rerun: server tools whose calls get the stored results of the original response."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from responses_app.errors import ApiError
from responses_app.protocol.deltas import Delta, SearchStarted
from responses_app.tools.base import Json, ToolExecutor
from responses_app.tools.composite import CompositeExecutor, CompositeOffer
from responses_app.tools.mcp.sessions import McpSessions
from responses_app.tools.recorded.calls import CallKey, call_key, recorded_result
from responses_app.tools.web_search.history import BrowsingHistory

MAX_SHOWN_CHARS: Final = 600
SEARCH_TYPES: Final = frozenset({"web_search_call", "file_search_call"})


class NoRecordedResult(ApiError):
    """Call of a rerun without a stored result: the run ends as failed, because any result would be invented."""

    default_code = "no_recorded_result"


class RecordedSessions(McpSessions):
    """Sessions of a rerun, which never connect."""

    def prepare(self, label: str) -> None:
        """Open nothing: the call gets a stored result."""


class RecordedExecutor(CompositeExecutor):
    """Server tools of a rerun, a `ToolExecutor`. Nothing runs: a call with the same name and arguments gets the stored result.

    Another call fails, and the next `offer` raises NoRecordedResult, which ends the run. `load` returns the stored items with
    results. The n-th of equal calls gets the n-th result, and calls behind the last result get the last.
    """

    def __init__(self, inner: ToolExecutor, load: Callable[[], Awaitable[Sequence[Json]]]) -> None:
        super().__init__([inner])
        self._load = load
        self._results: dict[CallKey, list[Json]] = defaultdict(list)
        self._used = Counter[CallKey]()
        self._history = BrowsingHistory()
        self._problem: str | None = None

    async def prepare(self, items: Sequence[Json]) -> None:
        """Load the stored items, and prepare the tools."""
        await super().prepare(items)
        for item in await self._load():
            self._results[call_key(item)].append(item)

    def offer(self, items: Sequence[Json]) -> CompositeOffer:
        """Return the offer of the tools. Raises NoRecordedResult behind a call without a stored result."""
        if self._problem is not None:
            raise NoRecordedResult(self._problem)
        self._history = BrowsingHistory(items)
        return super().offer(items)

    def is_repeatable(self, call: Json) -> bool:
        """Return True: to read a stored result changes nothing."""
        del call
        return True

    async def run(self, call: Json, report: Callable[[Delta], None]) -> Delta:
        """Return the stored result of `call`, or a failure that names the stored calls."""
        if call["type"] in SEARCH_TYPES:
            report(SearchStarted())
        key = call_key(call, self._history)
        stored = self._results.get(key)
        if not stored:
            self._problem = self._mismatch(key)
            return self.failure(call, self._problem)
        self._used[key] += 1
        return recorded_result(stored[min(self._used[key], len(stored)) - 1])

    def _mismatch(self, key: CallKey) -> str:
        recorded = ", ".join(str(other) for other in self._results if other.arguments) or "none"
        return (
            f"Stopped, because the original response has no result for this call: {_short(str(key))}. "
            f"Its calls: {_short(recorded)}."
        )


def _short(text: str) -> str:
    return text if len(text) <= MAX_SHOWN_CHARS else f"{text[:MAX_SHOWN_CHARS]}…"
