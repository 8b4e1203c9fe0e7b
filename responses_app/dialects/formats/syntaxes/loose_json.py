"""Text near JSON, converted to JSON in parts: other quotes, keys and words without quotes, comments, and commas too many."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from responses_app.dialects.formats.calls import json_string_part
from responses_app.dialects.formats.reader import Markers, Reader, Steps
from responses_app.dialects.text.whitespace import WHITE

_CLOSINGS = {"{": "}", "[": "]"}
_STRING_STOPS = {quote: re.compile(rf"[{quote}\\]") for quote in "\"'`"}
# What follows a quote that ends a string: other quotes are apostrophes.
_BEHIND_STRING = re.compile(r"\s*(?:[,:=\]}]|//|/\*)")
_BEHIND_STRING_BEGIN = re.compile(r"\s*/?\Z")
_KEY_END = re.compile(r"[\s:=,{}\[\]\"'`]")
_VALUE_END = re.compile(r"[,}\]\n]")
_COMMENT = re.compile(r"\s+//.*\Z")
# Characters of escapes with digits.
_ESCAPE_SIZES = {"u": 6, "x": 4}
_HEX = re.compile(r"[0-9a-fA-F]+")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?", re.ASCII)
_WORDS = {
    **{word: word for word in ("true", "false", "null")},
    "True": "true",
    "False": "false",
    "None": "null",
    "undefined": "null",
}


class LooseJson:
    """Converter of an object, a list or a string. Objects of JavaScript and literals of Python are such text, and so is JSON.

    `is_complete` is True behind the last bracket or quote. A bracket of the wrong kind ends the innermost object or list.
    """

    def __init__(self) -> None:
        self.is_complete = False
        self._json: list[str] = []
        self._open: list[str] = []  # objects and lists that are open
        self._is_first = True  # no item of the innermost one was read
        self._state = "item"  # `item`, or behind a key `colon`, then `value`
        self._quote = self._comment_end = ""

    def read(self, text: str, *, closed: bool) -> int:
        """Convert `text`, and return the number of characters read.

        Unless `closed`, the next text must begin with the characters that were not read.
        """
        at = 0
        while at < len(text) and not self.is_complete:
            read = self._string if self._quote else self._comment if self._comment_end else self._token
            after = read(text, at, closed)
            if after == at:
                break
            at = after
        return at

    def take(self) -> str:
        """Return the JSON since the last call of `take`."""
        text, self._json = "".join(self._json), []
        return text

    def end(self) -> str:
        """Close the open string, lists and objects, and return this JSON."""
        if self._quote:
            self._end_string()
        while self._open:
            self._close()
        return self.take()

    # Tokens: each method returns the position behind what it has read, the same position where it needs more text

    def _token(self, text: str, at: int, closed: bool) -> int:
        char = text[at]
        if char in WHITE:
            return at + 1
        if char == "/" and at + 1 == len(text) and not closed:
            return at
        if text[at : at + 2] in ("//", "/*"):
            self._comment_end = "\n" if text[at + 1] == "/" else "*/"
            return at + 2
        if char in ",:=}]":
            self._punctuation(char)
            return at + 1
        if char in "{[":
            if self._begin_value():
                self._open.append(char)
                self._json.append(char)
                self._is_first, self._state = True, "item"
            return at + 1
        if char in _STRING_STOPS:
            self._begin_item()
            self._json.append('"')
            self._quote = char
            return at + 1
        return self._word(text, at, closed)

    def _comment(self, text: str, at: int, closed: bool) -> int:
        end = text.find(self._comment_end, at)
        if end < 0:
            # The first half of the end may be the last character.
            return len(text) if closed or self._comment_end == "\n" or text[-1] != "*" else max(at, len(text) - 1)
        size, self._comment_end = len(self._comment_end), ""
        return end + size

    def _punctuation(self, char: str) -> None:
        if char in "}]":
            self._close()
        elif char in ":=" and self._state == "colon":
            self._json.append(": ")
            self._state = "value"
        elif char == ",":
            self._end_item()

    def _word(self, text: str, at: int, closed: bool) -> int:
        is_key = self._is_in_object and self._state == "item"
        end = (_KEY_END if is_key else _VALUE_END).search(text, at)
        if end is None and not closed:
            return at
        word = _COMMENT.sub("", text[at : end.start() if end else len(text)].rstrip())
        self._begin_item()
        self._json.append(json.dumps(word, ensure_ascii=False) if is_key else _word_json(word))
        self._end_value()
        return end.start() if end else len(text)

    def _string(self, text: str, at: int, closed: bool) -> int:
        stop = _STRING_STOPS[self._quote].search(text, at)
        end = stop.start() if stop else len(text)
        if end > at:
            self._json.append(json_string_part(text[at:end]))
            return end
        if text[at] == "\\":
            return self._escape(text, at, closed)
        behind = text[at + 1 :]
        if self._quote == "'" and self._open and not _BEHIND_STRING.match(behind):
            if _BEHIND_STRING_BEGIN.match(behind) and not closed:
                return at
            if behind.strip():
                self._json.append("'")
                return at + 1
        self._end_string()
        return at + 1

    def _escape(self, text: str, at: int, closed: bool) -> int:
        char = text[at + 1 : at + 2]
        size = _ESCAPE_SIZES.get(char, 2)
        if len(text) < at + size and not closed:
            return at
        if char in _ESCAPE_SIZES:
            digits = text[at + 2 : at + size]
            if len(digits) != size - 2 or not _HEX.fullmatch(digits):
                size, digits = 1, ""
            self._json.append(f"\\u{digits:0>4}" if digits else r"\\")
        elif char and char in '"\\/bfnrt':
            self._json.append(f"\\{char}")
        else:
            self._json.append(char if char in ("'", "`") else json_string_part(f"\\{char}"))
        return min(at + size, len(text))

    # Items

    @property
    def _is_in_object(self) -> bool:
        return bool(self._open) and self._open[-1] == "{"

    def _begin_value(self) -> bool:
        """Begin a value; return False where a key must stand."""
        if self._is_in_object and self._state == "item":
            return False
        self._begin_item()
        return True

    def _begin_item(self) -> None:
        """Begin a key or a value, behind a comma if another item stands before."""
        if self._state == "colon":
            self._json.append(": ")
            self._state = "value"
        elif self._state == "item" and self._open and not self._is_first:
            self._json.append(", ")
        self._is_first = False

    def _end_value(self) -> None:
        """End a key or a value."""
        self._state = "colon" if self._is_in_object and self._state == "item" else "item"
        self.is_complete = not self._open

    def _end_string(self) -> None:
        self._quote = ""
        self._json.append('"')
        self._end_value()

    def _end_item(self) -> None:
        """End a key without a value, which is null."""
        if self._state != "item":
            self._json.append("null" if self._state == "value" else ": null")
            self._state = "item"

    def _close(self) -> None:
        self._end_item()
        if not self._open:
            return
        self._json.append(_CLOSINGS[self._open.pop()])
        self._is_first, self._state = False, "item"
        self.is_complete = not self._open


def pass_loose_json(reader: Reader, stops: Markers, emit: Callable[[str], None]) -> Steps[None]:
    """Pass on an object, a list or a string as JSON, up to the end or before a marker of `stops`. Raises EndOfText.

    The end of the generation ends the object too, unless it was cut off.
    """
    loose = LooseJson()
    while True:
        match = stops.pattern.search(reader.text, reader.at)
        is_over = reader.closed and not reader.cut
        held = 0 if is_over else stops.partial(reader.text, reader.at)
        text = reader.text[reader.at : match.start() if match else len(reader.text) - held]
        reader.at += loose.read(text, closed=is_over or match is not None)
        is_ended = loose.is_complete or match is not None
        if text := loose.end() if is_ended or is_over else loose.take():
            emit(text)
        if is_ended:
            return
        yield from reader.wait()


def _word_json(word: str) -> str:
    """Return a word without quotes as JSON."""
    return _WORDS.get(word) or (word if _NUMBER.fullmatch(word) else json.dumps(word, ensure_ascii=False))
