"""Follows a JSON text that grows: whether it stands inside a string, and where its object ends."""

from __future__ import annotations


class JsonTracker:
    """Reads the text as it comes; `open` from the quote that begins a string to the one that ends it, `over` behind the object."""

    __slots__ = ("_depth", "_escaped", "open", "over")

    def __init__(self) -> None:
        self.open = self.over = self._escaped = False
        self._depth = 0

    def read(self, text: str) -> int:
        """Read on, up to the end of the object; how many characters belong to it."""
        for index, char in enumerate(text):
            if self.over:
                return index
            if self._escaped:
                self._escaped = False
            elif char == '"':
                self.open = not self.open
            elif char == "\\":
                self._escaped = self.open
            elif not self.open and char in "{[":
                self._depth += 1
            elif not self.open and char in "}]":
                self._depth -= 1
                self.over = self._depth == 0
        return len(text)
