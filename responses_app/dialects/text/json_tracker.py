"""Tracker of a growing JSON text: strings, nesting, and the end of the outermost object."""

from __future__ import annotations


class JsonTracker:
    """State of a JSON text read in parts.

    `in_string` is True between the opening and the closing quote of a string. `is_complete` is True after the outermost object
    or array.
    """

    __slots__ = ("_depth", "_escaped", "in_string", "is_complete")

    def __init__(self) -> None:
        self.in_string = self.is_complete = self._escaped = False
        self._depth = 0

    @property
    def is_balanced(self) -> bool:
        """Return True if no string, object or array is open."""
        return not self.in_string and self._depth == 0

    def read(self, text: str) -> int:
        """Read on, up to the end of the outermost object; return the number of characters read."""
        for index, char in enumerate(text):
            if self.is_complete:
                return index
            if self._escaped:
                self._escaped = False
            elif char == '"':
                self.in_string = not self.in_string
            elif char == "\\":
                self._escaped = self.in_string
            elif not self.in_string and char in "{[":
                self._depth += 1
            elif not self.in_string and char in "}]":
                self._depth -= 1
                self.is_complete = self._depth == 0
        return len(text)

    def read_string(self, text: str) -> int:
        """Read on, up to the end of the open string; return the number of characters before the closing quote."""
        for index, char in enumerate(text):
            self.read(char)
            if not self.in_string:
                return index
        return len(text)
