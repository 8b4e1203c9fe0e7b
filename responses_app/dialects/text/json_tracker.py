"""Tracker of a growing JSON text: strings, nesting, and the end of the outermost object."""

from __future__ import annotations

import re
from typing import Final

_END_OF_STRING: Final = re.compile(r'["\\]')
_STRUCTURE: Final = re.compile(r'["{}\[\]]')


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

    @property
    def is_inside_string(self) -> bool:
        """Return True if the next character is part of the open string, unless it is a quote or a backslash."""
        return self.in_string and not self._escaped

    def read(self, text: str) -> int:
        """Read on, up to the end of the outermost object; return the number of characters read."""
        at = 0
        while at < len(text) and not self.is_complete:
            at = self._read_string(text, at) if self.in_string else self._read_structure(text, at)
        return at

    def read_string(self, text: str) -> int:
        """Read on, up to the end of the open string; return the number of characters before the closing quote."""
        end = self._read_string(text, 0)
        return end if self.in_string else end - 1

    def _read_string(self, text: str, at: int) -> int:
        """Read the open string from `at` on, with the closing quote; return the position behind."""
        if self._escaped and at < len(text):
            self._escaped, at = False, at + 1
        while (match := _END_OF_STRING.search(text, at)) is not None:
            if match[0] == '"':
                self.in_string = False
                return match.end()
            if match.end() == len(text):
                self._escaped = True
            at = match.end() + 1
        return len(text)

    def _read_structure(self, text: str, at: int) -> int:
        """Read from `at` up to a quote or bracket, with it; return the position behind."""
        match = _STRUCTURE.search(text, at)
        if match is None:
            return len(text)
        if match[0] == '"':
            self.in_string = True
        else:
            self._depth += 1 if match[0] in "{[" else -1
            self.is_complete = match[0] in "}]" and self._depth == 0
        return match.end()
