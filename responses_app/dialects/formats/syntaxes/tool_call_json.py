"""Incremental parser of the JSON object of a tool call: the name when complete, the arguments as generated."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from responses_app.dialects.text.json_tracker import JsonTracker
from responses_app.dialects.text.whitespace import WHITE

_NAMES = frozenset({"function", "name", "tool", "tool_name"})
_ARGUMENTS = frozenset({"args", "arguments", "input", "parameters", "params"})
# Keys of calls in other formats; their values are no arguments.
_IGNORED = frozenset({"id", "type", "index", "tool_call_id"})
_IN_STRING = re.compile(r'["\\<]')
_OUTSIDE = re.compile(r'["{}\[\]<]')
# Characters of a string of arguments at which there is something to decide.
STRING_ENDS = frozenset('"\\<\n')
_SCALAR_END = re.compile(r"[,}\]\s<]")


class ToolCallJsonParser:
    """Parser of `{"name": ..., "arguments": {...}}`, keys in any order.

    Arguments are passed on exactly as generated and parsed only to find their end. Arguments in a JSON string are unwrapped;
    `null` means no arguments. An object may stand in the key `function` of another, as in messages of OpenAI's API.

    `called` is True once name and arguments are certain, `closed` after the last brace, `broken` once the text cannot be such
    an object, `nameless` if the name is missing or no text. `quoted` is True inside a string, `has_object` once an object of
    arguments has begun.
    """

    def __init__(self) -> None:
        self.name = ""
        self.called = self.closed = self.broken = self.nameless = self.has_object = False
        self._state: Callable[[str, int], int] = self._read_start
        self._arguments: list[str] = []
        self._key: str | None = None  # None while reading a key
        self._outer = 0  # number of objects around the object that is read
        self._unknown: list[str] = []  # unknown keys with their values
        self._raw: list[str] = []  # the key or value being read
        self._is_passed_on = False  # True to pass the value on as generated
        self._tracker = JsonTracker()  # of the key or value being read
        self._literal = False  # True if the next "<" begins no marker
        self._newline = False  # True after a raw newline

    def feed(self, text: str, at: int, *, literal: bool = False) -> int:
        """Parse `text` from `at`. Return the index of the first unread character: after the object, or at a possible marker.

        A `<` inside a string is no marker, except after a raw newline: JSON strings cannot contain one, so the string was never
        closed. With `literal` the first character is no marker.
        """
        self._literal = literal
        while at < len(text) and not self.over:
            state = self._state
            after = state(text, at)
            if after == at and self._state == state:
                break
            at = after
        return at

    def take(self) -> str:
        """Return the arguments since the last call of `take`; empty before `called`."""
        if not self.called or not self._arguments:
            return ""
        text, self._arguments = "".join(self._arguments), []
        return text

    @property
    def misplaced(self) -> str:
        """Text read that is neither name nor arguments: unknown keys with their values, and a key or value without the end."""
        key = [f'"{self._key}":'] if self._key not in (None, *_NAMES, *_ARGUMENTS, *_IGNORED) else []
        return " ".join([*self._unknown, *key, *([] if self._is_passed_on else ["".join(self._raw)])])

    @property
    def quoted(self) -> bool:
        """True if the text read so far ends inside a string."""
        return self._tracker.in_string

    @property
    def is_in_argument(self) -> bool:
        """True inside a string of arguments that is passed on, unless the next character may begin a marker."""
        return self.called and self._is_passed_on and self._tracker.is_inside_string and not self._newline

    @property
    def over(self) -> bool:
        """True if no more text will be read."""
        return self.closed or self.broken

    @property
    def waiting(self) -> bool:
        """True if arguments were read but no name yet."""
        return bool(self._arguments) and not self.called

    # Between the values: each state reads a single character, or stays before it

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

    def _read_start(self, text: str, at: int) -> int:
        return self._expect(text, at, {"{": self._to_key, "[": lambda: None})

    def _next_key(self, text: str, at: int) -> int:
        return self._expect(text, at, {'"': self._in_key, "}": self._close, ",": lambda: None})

    def _read_colon(self, text: str, at: int) -> int:
        return self._expect(text, at, {":": self._to_value})

    def _after_value(self, text: str, at: int) -> int:
        return self._expect(text, at, {",": self._to_key, "}": self._close})

    def _to_key(self) -> None:
        self._key, self._state = None, self._next_key

    def _to_value(self) -> None:
        self._state = self._value

    def _in_key(self) -> None:
        self._start(pass_on=False)
        self._tracker.read('"')
        self._raw.append('"')
        self._state = self._nested

    def _close(self) -> None:
        if self._outer:
            self._outer, self._key, self._state = self._outer - 1, None, self._after_value
        elif self.name:
            self.called = self.closed = True
        else:
            self.broken = self.nameless = True

    # Keys and values

    def _start(self, *, pass_on: bool) -> None:
        self._raw, self._is_passed_on, self._tracker, self._newline = [], pass_on, JsonTracker(), False

    def _value(self, text: str, at: int) -> int:
        char = text[at]
        if char in WHITE:
            return at + 1
        if char == "<" and not self._literal:
            return at
        if char == "{" and self._key == "function" and not self.called:
            self._outer += 1
            self._to_key()
            return at + 1
        nested = char in '{["'
        self._start(pass_on=self._key in _ARGUMENTS and nested and char != '"')
        self.has_object = self.has_object or (self._is_passed_on and char == "{")
        self.called = self.called or (self._is_passed_on and bool(self.name))
        self._state = self._nested if nested else self._scalar
        return self._state(text, at)

    def _scalar(self, text: str, at: int) -> int:
        match = _SCALAR_END.search(text, at)
        end = match.start() if match else len(text)
        self._raw.append(text[at:end])
        if match:
            self._end_value()
        return end

    def _nested(self, text: str, at: int) -> int:
        """Read an object, array or string to the end."""
        match = (_IN_STRING if self.quoted else _OUTSIDE).search(text, at)
        end = match.start() if match else len(text)
        if end > at:
            self._newline = text[end - 1] == "\n"
            self._append(text[at:end])
            return end
        return self._read_special(text, at)

    def _read_special(self, text: str, at: int) -> int:
        """Read a character that may change the nesting, or begin a marker."""
        char = text[at]
        if char == "<" and not self._literal and (not self.quoted or self._newline):
            return at
        width = 1
        if char == "\\":
            if at + 1 == len(text):
                return at  # an escape is read in full
            width = 2
        self._literal = self._newline = False
        self._append(text[at : at + width])
        self._tracker.read(text[at : at + width])
        if self._tracker.is_balanced:
            self._end_value()
        return at + width

    def _append(self, text: str) -> None:
        (self._arguments if self._is_passed_on else self._raw).append(text)

    def _end_value(self) -> None:
        """Handle the end of a key or a value."""
        if self._key is None:
            key = self._loads()
            if not self.broken:
                self._key, self._state, self._raw = str(key), self._read_colon, []
            return
        if self._key in _NAMES:
            self._set_name(self._loads())
        elif self._key in _ARGUMENTS and not self._is_passed_on:
            self._set_scalar_arguments()
        elif self._key not in _ARGUMENTS | _IGNORED:
            self._unknown.append(f'"{self._key}": {"".join(self._raw)}')
        if not self.broken or self.called:
            self._raw = []
        self._key, self._state = None, self._after_value

    def _set_name(self, name: object) -> None:
        if self.called or self.name:
            self._unknown.append(f'"{self._key}": {"".join(self._raw)}')
        elif isinstance(name, str) and name:
            self.name = name
            self.called = bool(self._arguments)
        else:
            self.broken = self.nameless = True

    def _set_scalar_arguments(self) -> None:
        """Handle arguments other than an object: a string, a scalar, or text that is no JSON."""
        value = self._loads()
        if self.broken:
            self._arguments.append("".join(self._raw))
        elif isinstance(value, str):
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
