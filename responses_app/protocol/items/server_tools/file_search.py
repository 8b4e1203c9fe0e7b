"""File search call: a search in vector stores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from responses_app.protocol.events import Event
from responses_app.protocol.ids import IdFactory
from responses_app.protocol.items.base import COMPLETED_INCOMPLETE_OR_FAILED, Family, Item, Json, OpenedWhenComplete
from responses_app.protocol.items.server_tools.search_call import SEARCH_PROGRESS, SEARCHING, SearchCall, SearchStarted
from responses_app.protocol.items.server_tools.tool_result import ToolResult


@dataclass(slots=True)
class FileSearch(OpenedWhenComplete):
    """Beginning of a file search. `arguments` are the arguments of the model, which the tool gets and no event shows."""

    queries: Sequence[str] = ()
    arguments: str = ""


@dataclass(slots=True)
class FileResult(ToolResult):
    """The end of a file search."""

    queries: Sequence[str]
    results: Sequence[Json] | None = None
    failed: bool = False


class FileSearchCall(SearchCall):
    """An open file search call. The initial item shows no queries, the closed item always does."""

    __slots__ = ("queries",)

    def __init__(self, family: Family, body: Item, index: int) -> None:
        super().__init__(family, body, index)
        self.queries: list[str] = []

    def take_opening(self, delta: FileSearch) -> None:
        """Store the queries of `delta` for the end of the item, and the arguments for the tool."""
        self.queries, self.arguments = list(delta.queries), delta.arguments

    def finish(self, delta: FileResult) -> list[Event]:
        """Close the search with queries and results."""
        results = None if delta.results is None else list(delta.results)
        return self.finish_with({"queries": list(delta.queries), "results": results}, failed=delta.failed)

    def close(self, status: str) -> list[Event]:
        """Close the search without results."""
        return [self.done({"queries": self.queries, "status": status})]


def _initial(_delta: FileSearch, _new_id: IdFactory) -> Item:
    return {"status": "in_progress", "queries": [], "results": None}


FILE_SEARCH_CALL: Final = Family(
    type="file_search_call",
    id_prefix="fs_",
    tool="file_search",
    runs_on_server=True,
    item=FileSearchCall,
    opened_by={FileSearch: ""},
    initial=_initial,
    steps={SearchStarted: FileSearchCall.mark_searching},
    results={FileResult: FileSearchCall.finish},
    progress=SEARCH_PROGRESS,
    running_status=SEARCHING,
    final_statuses=COMPLETED_INCOMPLETE_OR_FAILED,
)
