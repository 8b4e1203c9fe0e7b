"""White space buffer: white space between items is a separator and dropped, white space inside an item is text."""

from __future__ import annotations

from typing import Final

WHITE: Final = " \t\r\n"


class WhitespaceBuffer:
    """Holds white space back until more text of the same item follows.

    `bare` drops white space at the start of the item, where it follows a marker.
    """

    def __init__(self, *, bare: bool = False) -> None:
        self._bare = bare
        self._is_empty = True
        self._white: list[str] = []
        self._held = 0

    def feed(self, text: str) -> str:
        """Return the new text without trailing white space."""
        if text and not self._held and not self._is_empty and text[-1] not in WHITE:
            return text
        visible = text.rstrip(WHITE)
        white = text[len(visible) :]
        if not visible:
            self._hold(white)
            return ""
        visible = self._take() + visible
        self._hold(white)
        if self._is_empty and self._bare:
            visible = visible.lstrip(WHITE)
        self._is_empty = False
        return visible

    @property
    def held(self) -> int:
        """Number of characters held back."""
        return self._held

    def flush(self) -> str:
        """Return the white space after the text; empty if the item has no text."""
        white = self._take()
        return "" if self._is_empty else white

    def reset(self) -> None:
        """Start a new item, after a marker."""
        self._take()
        self._bare = self._is_empty = True

    def _hold(self, white: str) -> None:
        self._white.append(white)
        self._held += len(white)

    def _take(self) -> str:
        """Return and forget the white space held back."""
        white, self._white, self._held = "".join(self._white), [], 0
        return white
