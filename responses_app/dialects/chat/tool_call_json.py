"""Reads the JSON object of a tool call while it is generated: its name as soon as it is known, its arguments as they come."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from responses_app.dialects.text.json_tracker import JsonTracker
from responses_app.dialects.text.whitespace import WHITE

_ARGUMENTS = frozenset({"arguments", "parameters"})
_IN_STRING = re.compile(r'["\\<]')
_OUTSIDE = re.compile(r'["{}\[\]<]')
_SCALAR_END = re.compile(r"[,}\]\s<]")


class ToolCallJsonParser:
    """One `{"name": ..., "arguments": {...}}`, keys in any order, unknown keys ignored.

    Arguments leave exactly as generated; they are followed only as far as needed to find their end. A string in their place
    is unwrapped, `null` says nothing. `called` is set once name and arguments are certain, `closed` behind the last brace,
    `broken` where the text cannot be such an object any more; `quoted` inside of a string.
    """

    def __init__(self) -> None:
        self.name = ""
        self.called = self.closed = self.broken = False
        self._state: Callable[[str, int], int] = self._begin
        self._arguments: list[str] = []
        self._key: str | None = None  # None while a key is read
        self._raw: list[str] = []  # the key or value that is being read
        self._live = False  # it leaves as it comes
        self._tracker = JsonTracker()  # of the key or value that is being read
        self._literal = False  # the next "<" is known to begin no marker
        self._newline = False  # the character before was a raw newline

    def feed(self, text: str, at: int, *, literal: bool = False) -> int:
        """Read on from `at`; the index of the first unread character: behind the object, or at a `<` that may be a marker.

        A `<` inside a string is no marker, except behind a raw newline, which no JSON string may hold: there the string
        was never closed. With `literal` the first character is no marker.
        """
        self._literal = literal
        while at < len(text) and not self.over:
            state = self._state
            behind = state(text, at)
            if behind == at and self._state == state:
                break
            at = behind
        return at

    def take(self) -> str:
        """Arguments since the last time; none before `called`."""
        if not self.called or not self._arguments:
            return ""
        text, self._arguments = "".join(self._arguments), []
        return text

    @property
    def quoted(self) -> bool:
        """Return whether the text read so far ends inside a string."""
        return self._tracker.in_string

    @property
    def over(self) -> bool:
        """Whether nothing more will be read."""
        return self.closed or self.broken

    @property
    def waiting(self) -> bool:
        """Whether arguments wait for a name."""
        return bool(self._arguments) and not self.called

    # Between the values: each state reads one character, or stays before it

    def _expect(self, text: str, at: int, moves: dict[str, Callable[[], None]]) -> int:
        char = text[at]
        if char in WHITE:
            return at + 1
        if char == "<" and not self._literal:
            return at
        self._literal = False
        move = moves.get(char)
        if move is None:
            self.broken = True
            return at
        move()
        return at + 1

    def _begin(self, text: str, at: int) -> int:
        return self._expect(text, at, {"{": self._to_key, "[": lambda: None})

    def _next_key(self, text: str, at: int) -> int:
        return self._expect(text, at, {'"': self._in_key, "}": self._close, ",": lambda: None})

    def _colon(self, text: str, at: int) -> int:
        return self._expect(text, at, {":": self._to_value})

    def _behind(self, text: str, at: int) -> int:
        return self._expect(text, at, {",": self._to_key, "}": self._close})

    def _to_key(self) -> None:
        self._state = self._next_key

    def _to_value(self) -> None:
        self._state = self._value

    def _in_key(self) -> None:
        self._start(live=False)
        self._tracker.read('"')
        self._raw.append('"')
        self._state = self._nested

    def _close(self) -> None:
        if self.name:
            self.called = self.closed = True
        else:
            self.broken = True

    # Keys and values

    def _start(self, *, live: bool) -> None:
        self._raw, self._live, self._tracker, self._newline = [], live, JsonTracker(), False

    def _value(self, text: str, at: int) -> int:
        char = text[at]
        if char in WHITE:
            return at + 1
        if char == "<" and not self._literal:
            return at
        nested = char in '{["'
        self._start(live=self._key in _ARGUMENTS and nested and char != '"')
        self.called = self.called or (self._live and bool(self.name))
        self._state = self._nested if nested else self._scalar
        return self._state(text, at)

    def _scalar(self, text: str, at: int) -> int:
        match = _SCALAR_END.search(text, at)
        end = match.start() if match else len(text)
        self._raw.append(text[at:end])
        if match:
            self._ended()
        return end

    def _nested(self, text: str, at: int) -> int:
        """Objects, arrays and strings, up to their end."""
        match = (_IN_STRING if self.quoted else _OUTSIDE).search(text, at)
        end = match.start() if match else len(text)
        if end > at:
            self._newline = text[end - 1] == "\n"
            self._keep(text[at:end])
            return end
        return self._turn(text, at)

    def _turn(self, text: str, at: int) -> int:
        """One character that may change the depth, the quotes, or be a marker."""
        char = text[at]
        if char == "<" and not self._literal and (not self.quoted or self._newline):
            return at
        width = 1
        if char == "\\":
            if at + 1 == len(text):
                return at  # an escape is read as a whole
            width = 2
        self._literal = self._newline = False
        self._keep(text[at : at + width])
        self._tracker.read(text[at : at + width])
        if self._tracker.is_balanced:
            self._ended()
        return at + width

    def _keep(self, text: str) -> None:
        (self._arguments if self._live else self._raw).append(text)

    def _ended(self) -> None:
        """A key or a value is complete."""
        if self._key is None:
            self._key, self._state = str(self._loads()), self._colon
            return
        if self._key == "name":
            self._named(self._loads())
        elif self._key in _ARGUMENTS and not self._live:
            self._plain(self._loads())
        self._key, self._state = None, self._behind

    def _named(self, name: object) -> None:
        if isinstance(name, str) and name:
            self.name = name
            self.called = bool(self._arguments)
        else:
            self.broken = True

    def _plain(self, value: object) -> None:
        """Arguments that are no object: text in quotes, or a scalar."""
        if isinstance(value, str):
            self._arguments.append(value)
        elif value is not None:
            self._arguments.append("".join(self._raw))
        self.called = bool(self.name)

    def _loads(self) -> object:
        try:
            value: object = json.loads("".join(self._raw), strict=False)
        except (ValueError, RecursionError):
            self.broken = True
            return None
        return value
