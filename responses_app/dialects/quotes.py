"""Whether a JSON text that grows stands inside a string."""

from __future__ import annotations


class Quotes:
    """Reads the text as it comes; `open` from the quote that begins a string to the one that ends it."""

    __slots__ = ("_escaped", "open")

    def __init__(self) -> None:
        self.open = self._escaped = False

    def read(self, text: str) -> None:
        """Read on."""
        for char in text:
            if self._escaped:
                self._escaped = False
            elif char == '"':
                self.open = not self.open
            elif char == "\\":
                self._escaped = self.open
