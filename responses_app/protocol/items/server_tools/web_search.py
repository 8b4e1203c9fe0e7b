"""Web search call: a search or a page that the server opens on the web."""

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
class WebSearch(OpenedWhenComplete):
    """Beginning of a web search. `function` and `arguments` are the call of the model, which the tool gets and no event shows."""

    function: str = "web_search"
    arguments: str = ""


@dataclass(slots=True)
class WebResult(ToolResult):
    """End of a web search; `action` is in the wire form. The item has `results` only if these are not None."""

    action: Json
    failed: bool = False
    results: Sequence[Json] | None = None


class WebSearchCall(SearchCall):
    """An open web search call."""

    __slots__ = ("function",)

    def __init__(self, family: Family, body: Item, index: int) -> None:
        super().__init__(family, body, index)
        self.function = ""

    def take_opening(self, delta: WebSearch) -> None:
        """Store the call of the model for the tool."""
        self.function, self.arguments = delta.function, delta.arguments

    def body_so_far(self) -> Item:
        """Return the item with the call of the model, for the tool."""
        return {**super().body_so_far(), "function": self.function}

    def finish(self, delta: WebResult) -> list[Event]:
        """Close the search with the action and the results."""
        results = {} if delta.results is None else {"results": list(delta.results)}
        return self.finish_with({"action": delta.action, **results}, failed=delta.failed)


def _initial(_delta: WebSearch, _new_id: IdFactory) -> Item:
    # Typed clients require an action, which is not known yet, so it is an empty search.
    return {"status": "in_progress", "action": {"type": "search", "query": ""}}


WEB_SEARCH_CALL: Final = Family(
    type="web_search_call",
    id_prefix="ws_",
    tool="web_search",
    runs_on_server=True,
    item=WebSearchCall,
    opened_by={WebSearch: ""},
    initial=_initial,
    steps={SearchStarted: WebSearchCall.mark_searching},
    results={WebResult: WebSearchCall.finish},
    progress=SEARCH_PROGRESS,
    running_status=SEARCHING,
    final_statuses=COMPLETED_INCOMPLETE_OR_FAILED,
)
