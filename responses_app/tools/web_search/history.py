"""Browsing history of a run: the displays so far, read from the items of the context and of the output."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from responses_app.dialects.citations.sources import DisplaySources, Sources, WebSource
from responses_app.protocol.items.server_tools.tool_result import MODEL_OUTPUT, ModelOutput
from responses_app.tools.base import Json
from responses_app.tools.web_search.display import LINKS_PER_DISPLAY, BrowsingDisplay, parse_display


class LinkMissing(Exception):
    """A number or a cursor that names no display and no link. The message is for the model."""


class BrowsingHistory:
    """Displays by cursor. A new owner of the run reads the same history from the same items."""

    def __init__(self, items: Sequence[Json] = ()) -> None:
        self._displays = {display.cursor: display for display in _displays(items)}
        self._next = max(self._displays, default=-1) + 1

    def reserve(self) -> int:
        """Return the cursor of the next display."""
        self._next += 1
        return self._next - 1

    def add(self, text: str) -> None:
        """Add the display `text` of a call."""
        display = parse_display(text)
        if display is not None:
            self._displays[display.cursor] = display

    def page(self, cursor: int | None) -> BrowsingDisplay:
        """Return the display of a page: that of `cursor`, or the newest. Raises LinkMissing."""
        if cursor is None:
            last_display = max((one for one in self._displays.values() if one.url), key=lambda one: one.cursor, default=None)
            if last_display is None:
                raise LinkMissing("No page is open. Search first, or open a page by its URL.")
            return last_display
        if cursor not in self._displays:
            raise LinkMissing(f"There is no display with the number {cursor}.")
        return self._displays[cursor]

    def link(self, number: int, cursor: int | None = None) -> tuple[BrowsingDisplay, int]:
        """Return the display of the link `number` and the index of the link. Raises LinkMissing.

        Models may also give the index alone, with the cursor of the display.
        """
        index = number % LINKS_PER_DISPLAY
        at = cursor if cursor is not None and number < LINKS_PER_DISPLAY else number // LINKS_PER_DISPLAY
        if at not in self._displays:
            raise LinkMissing(f"There is no link with the number {number}.")
        return self._displays[at], index

    def sources(self) -> Sources:
        """Return the pages that a text can cite, by display and line."""
        return Sources(displays={cursor: _cited(display) for cursor, display in self._displays.items()})

    def has_page(self, cursor: int) -> bool:
        """Return True if the display `cursor` shows a page."""
        return cursor in self._displays and self._displays[cursor].url is not None


def _cited(display: BrowsingDisplay) -> DisplaySources:
    """Return the pages of a display, each with its first line. A result belongs to its own page."""
    if display.url is not None:
        return DisplaySources([(0, WebSource(display.url, display.title))])
    return DisplaySources([(one.line, WebSource(one.url, one.title)) for one in display.results.values()])


def _displays(items: Sequence[Json]) -> Iterator[BrowsingDisplay]:
    for item in items:
        output = item.get(MODEL_OUTPUT)
        if item.get("type") == "web_search_call" and isinstance(output, ModelOutput) and output.text:
            display = parse_display(output.text)
            if display is not None:
                yield display
