"""Search call: the part that web search calls and file search calls share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from responses_app.protocol.events import Event
from responses_app.protocol.items.base import Delta, Family, Item, Json, OpenItem

SEARCHING: Final = "searching"
SEARCH_PROGRESS: Final = ("in_progress", SEARCHING, "completed")


@dataclass(slots=True)
class SearchStarted(Delta):
    """The start of a search."""


class SearchCall(OpenItem):
    """An open search call. `arguments` are the arguments of the model, which no event shows."""

    __slots__ = ("arguments", "searching")

    def __init__(self, family: Family, body: Item, index: int) -> None:
        super().__init__(family, body, index)
        self.arguments = ""
        self.searching = False

    def body_so_far(self) -> Item:
        """Return the item with the arguments of the model, for the tool."""
        return {**self.body, "arguments": self.arguments}

    def mark_searching(self, _delta: SearchStarted) -> list[Event]:
        """Show that the search runs. Repeated calls do nothing: a search may run again after a crash."""
        shown, self.searching = self.searching, True
        return [] if shown else [self.progress(SEARCHING)]

    def replay(self, event: Json) -> None:
        """Apply the start of the search."""
        self.searching |= event["type"].endswith(f".{SEARCHING}")

    def finish_with(self, changes: Json, *, failed: bool) -> list[Event]:
        """Close the search with `changes`. A failed search has no `completed` event."""
        status = "failed" if failed else "completed"
        done = self.done({**changes, "status": status})
        return [done] if failed else [self.progress("completed"), done]
