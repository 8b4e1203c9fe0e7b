"""Code in Markdown, found while the text is written: fenced blocks, and spans within a line."""

from __future__ import annotations

import re
from dataclasses import dataclass

# The text behind the marks of a fence, up to this length, decides whether the marks open a block.
MAX_INFO = 200
_MARKS = re.compile(r"`+|~+")


@dataclass(slots=True)
class CodeTracker:
    """Tracker of code. In code nothing is cited. A span ends with the line at the latest."""

    _fence: str = ""
    _span: int = 0

    @property
    def is_code(self) -> bool:
        """True inside a block or a span."""
        return bool(self._fence or self._span)

    def end_line(self) -> None:
        """End the span."""
        self._span = 0

    def read_marks(self, text: str, at: int, *, at_line_start: bool, is_whole: bool) -> int | None:
        """Read the marks at the position `at` of `text` and return their length; None if more text decides what they are.

        With `is_whole` no more text comes.
        """
        marks = _MARKS.match(text, at)
        assert marks is not None  # noqa: S101 - called at a mark
        if marks.end() == len(text) and not is_whole:
            return None
        length = len(marks[0])
        if at_line_start and length >= len(self._fence or "```"):
            is_fence = self._is_fence(marks[0], text[marks.end() : marks.end() + MAX_INFO], is_whole=is_whole)
            if is_fence is None:
                return None
            if is_fence:
                self._fence = "" if self._fence else marks[0]
                return length
        self._read_span(marks[0])
        return length

    def _is_fence(self, marks: str, after_marks: str, *, is_whole: bool) -> bool | None:
        """Return whether marks at the start of a line open or close a block; None if more text decides."""
        line, newline, _ = after_marks.partition("\n")
        is_certain = bool(newline) or is_whole or len(after_marks) == MAX_INFO
        if self._fence:
            if line.strip(" \t"):
                return False
            return marks[0] == self._fence[0] if is_certain else None
        if marks[0] == "`" and "`" in line:
            return False
        return True if is_certain else None

    def _read_span(self, marks: str) -> None:
        if self._fence or marks[0] == "~":
            return
        if not self._span:
            self._span = len(marks)
        elif self._span == len(marks):
            self._span = 0
