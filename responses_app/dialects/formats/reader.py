"""Reader of a growing text: coroutines that wait for text, so that the grouping of tokens has no effect."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from itertools import pairwise
from typing import TypeAlias, TypeVar

from responses_app.dialects.text.json_tracker import JsonTracker
from responses_app.dialects.text.whitespace import WHITE

T = TypeVar("T")
Steps: TypeAlias = Generator[None, None, T]
"""Coroutine that yields whenever it needs more text."""


class EndOfText(Exception):
    """The generation ended where more text is needed."""


class Markers:
    """Set of marker texts to search for.

    Raises ValueError if a marker begins another, unless they `may_overlap`: then the longer is searched for, and `pass_until`
    waits for text that decides. `pattern` finds any of them.
    """

    def __init__(self, *texts: str, may_overlap: bool = False) -> None:
        self._texts = sorted(set(filter(None, texts)))
        overlap = next(((one, other) for one, other in pairwise(self._texts) if other.startswith(one)), None)
        if overlap and not may_overlap:
            raise ValueError("The marker {!r} begins the marker {!r}.".format(*overlap))
        self._has_overlap = overlap is not None
        self._has_inner = any(one in other[1:-1] for one in self._texts for other in self._texts)
        self.pattern = re.compile("|".join(map(re.escape, reversed(self._texts))) or r"(?!)")
        self.first_chars = frozenset(text[0] for text in self._texts)
        self._longest = max(map(len, self._texts), default=0)

    def match(self, text: str, at: int) -> bool:
        """Return True if a marker stands at `at`."""
        return self.pattern.match(text, at) is not None

    def may_grow(self, text: str, start: int, at: int) -> bool:
        """Return True if the marker at `at` may be a part of a longer marker, which begins there or between `start` and `at`."""
        if self._has_inner and len(text) - self.partial(text, start) < at:
            return True
        return self._has_overlap and self.begins(text[at:])

    def partial(self, text: str, at: int) -> int:
        """Return the length of the longest end of `text[at:]` that begins a marker without completing it."""
        for start in range(max(at, len(text) - self._longest + 1), len(text)):
            if text[start] in self.first_chars and self.begins(text[start:]):
                return len(text) - start
        return 0

    def begins(self, text: str) -> bool:
        """Return True if `text` is a proper beginning of a marker, or empty."""
        return any(len(marker) > len(text) and marker.startswith(text) for marker in self._texts)


class Reader:
    """Text of a generation with a position. `closed` means that no text follows, `cut` that the model was not finished."""

    def __init__(self) -> None:
        self.text = ""
        self.at = 0
        self.closed = self.cut = False
        self.unfinished = ""  # text read by `read_until` when the generation ended
        # Characters that end or change the string of arguments that is being read as it stands; None elsewhere.
        self.string_ends: frozenset[str] | None = None
        self._dropped = 0
        self._mark: int | None = None

    @property
    def position(self) -> int:
        """Number of characters read so far."""
        return self._dropped + self.at

    @property
    def unread(self) -> str:
        """Text not yet read."""
        return self.text[self.at :]

    @property
    def since_mark(self) -> str:
        """Text from the position of `mark` on, read or not; the unread text without a mark."""
        return self.text[self.at if self._mark is None else self._mark :]

    def append(self, text: str) -> None:
        """Append text, and forget the text that no `rewind` needs."""
        first = self.at if self._mark is None else self._mark
        self.text = self.text[first:] + text
        self._dropped += first
        self.at -= first
        self._mark = None if self._mark is None else 0

    def skip(self, count: int) -> None:
        """Count `count` characters as read that the reader does not get, behind the text that was read."""
        self._dropped += count

    def mark(self) -> None:
        """Remember the position for `rewind`."""
        self._mark = self.at

    def release(self) -> None:
        """Forget the position of `mark`."""
        self._mark = None

    def rewind(self) -> None:
        """Go back to the position of `mark`, and forget it."""
        if self._mark is not None:
            self.at, self._mark = self._mark, None

    def take(self, count: int) -> str:
        """Read `count` characters that are known to be there."""
        text = self.text[self.at : self.at + count]
        self.at += count
        return text

    def wait(self) -> Steps[None]:
        """Wait for more text. Raises EndOfText."""
        if self.closed:
            raise EndOfText
        yield

    def wait_in_string(self, ends: frozenset[str]) -> Steps[None]:
        """Wait for text with one of `ends` inside of a string of arguments. Raises EndOfText."""
        self.string_ends = ends
        try:
            yield from self.wait()
        finally:
            self.string_ends = None

    def peek(self) -> Steps[str]:
        """Return the next character without reading it. Raises EndOfText."""
        while self.at >= len(self.text):
            yield from self.wait()
        return self.text[self.at]

    def skip_space(self, more: str = "") -> Steps[None]:
        """Skip white space and the characters of `more`. Does not raise at the end of the text."""
        while True:
            while self.at < len(self.text) and self.text[self.at] in WHITE + more:
                self.at += 1
            if self.at < len(self.text) or self.closed:
                return
            yield

    def open_list(self, *, only_one: bool) -> Steps[None]:
        """Skip the opening brackets of a list. With `only_one` skip one bracket, so that `[[[[` is not read again from each bracket."""
        yield from self.skip_space("" if only_one else "[")
        if only_one and self.text.startswith("[", self.at):
            self.at += 1
            yield from self.skip_space()

    def accept(self, *literals: str) -> Steps[str | None]:
        """Read the longest literal that follows; None if none follows. Raises EndOfText if cut off at a possible literal."""
        while True:
            next_chars = self.text[self.at : self.at + max(map(len, literals))]
            if (self.cut or not self.closed) and any(
                len(each) > len(next_chars) and each.startswith(next_chars) for each in literals
            ):
                yield from self.wait()
                continue
            longest_literal = max((each for each in literals if next_chars.startswith(each)), key=len, default=None)
            self.at += len(longest_literal or "")
            return longest_literal

    def pass_until(self, markers: Markers, emit: Callable[[str], None]) -> Steps[str]:
        """Pass the text on to `emit` up to a marker; read and return the marker. Raises EndOfText.

        Text that may begin a marker is held back. If the generation was cut off there, it stays unread.
        """
        while True:
            match = markers.pattern.search(self.text, self.at)
            is_over = self.closed and not self.cut
            if match is not None and (is_over or not markers.may_grow(self.text, self.at, match.start())):
                emit(self.text[self.at : match.start()])
                self.at = match.end()
                return match[0]
            held = 0 if is_over else markers.partial(self.text, self.at)
            end = len(self.text) - held
            if end > self.at:
                emit(self.text[self.at : end])
                self.at = end
            yield from self.wait()

    def read_until(self, markers: Markers) -> Steps[tuple[str, str]]:
        """Read the text up to a marker; return the text and the marker. Raises EndOfText, with the text in `unfinished`."""
        parts: list[str] = []
        try:
            marker = yield from self.pass_until(markers, parts.append)
        except EndOfText:
            self.unfinished = "".join(parts)
            raise
        return "".join(parts), marker

    def pass_json(self, stops: Markers, emit: Callable[[str], None]) -> Steps[None]:
        """Pass on an object or array, verbatim, up to the end or before a marker of `stops`. Raises EndOfText."""
        tracker, ends = JsonTracker(), stops.first_chars | {'"', "\\"}
        while True:
            match = stops.pattern.search(self.text, self.at)
            held = 0 if self.closed and not self.cut else stops.partial(self.text, self.at)
            text = self.text[self.at : match.start() if match else len(self.text) - held]
            count = tracker.read(text)
            emit(self.take(count))
            if match is not None or tracker.is_complete:
                return
            yield from self.wait_in_string(ends) if tracker.is_inside_string else self.wait()
