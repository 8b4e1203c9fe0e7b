"""White space between items is a separator and dies; inside of an item it stays."""

from __future__ import annotations

from typing import Final

WHITE: Final = " \t\r\n"


class WhitespaceBuffer:
    """Holds white space back until something follows it in the same item.

    `bare` means that white space at the start of the item is no text: it stands behind a marker.
    """

    def __init__(self, *, bare: bool = False) -> None:
        self._bare = bare
        self._fresh = True
        self._white = ""

    def feed(self, text: str) -> str:
        """What may be said of the text so far."""
        text = self._white + text
        said = text.rstrip(WHITE)
        self._white = text[len(said) :]
        if not said:
            return ""
        if self._fresh and self._bare:
            said = said.lstrip(WHITE)
        self._fresh = False
        return said

    @property
    def held(self) -> int:
        """How many characters wait."""
        return len(self._white)

    def flush(self) -> str:
        """The white space behind what was said; none if nothing was, for then it is no text."""
        white, self._white = self._white, ""
        return "" if self._fresh else white

    def reset(self) -> None:
        """A marker came, another item begins."""
        self._bare, self._fresh, self._white = True, True, ""
