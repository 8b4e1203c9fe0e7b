"""Texts that a regular expression matches: the delimiters of a response template may be patterns."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

_ATOM = re.compile(r"\(\?P?<(?P<name>\w+)>|\((?P<look>\?<?[=!])?(?:\?\w*:)?|\[\^?\]?(?:\\.|[^\]\\])*\]|\\.|.", re.DOTALL)
_TIMES = re.compile(r"(?:[*+?]|\{(?P<least>\d*)(?:,\d*)?\})[+?]?")
# Characters of classes, and the anchors.
_CLASSES = {r"\s": " ", r"\d": "0", r"\w": "x", r"\S": "x", r"\D": "x", r"\W": "-", r"\n": "\n", r"\t": "\t", r"\r": "\r"}
_ANCHORS = frozenset({"^", "$", r"\A", r"\Z", r"\b", r"\B"})


@dataclass(frozen=True, slots=True)
class Choices:
    """Choices where a pattern allows several texts: white space, the last of alternatives, and groups that may be absent."""

    space: str
    last: bool
    optional: bool


def pattern_text(pattern: str, values: Mapping[str, str], choices: Choices) -> str:
    """Return a text that `pattern` may match, with `values` for the named groups, and for words under the empty name.

    The caller checks that it matches.
    """
    return _Text(pattern, values, choices).alternatives()


class _Text:
    def __init__(self, pattern: str, values: Mapping[str, str], choices: Choices) -> None:
        self._pattern, self._at = pattern, 0
        self._values = values
        self._choices = choices
        # Whether a named group has been read.
        self._has_name = False

    def alternatives(self) -> str:
        """Read up to the end of a group, or of the pattern."""
        texts = [""]
        while self._at < len(self._pattern) and self._pattern[self._at] != ")":
            if self._pattern[self._at] == "|":
                self._at += 1
                texts.append("")
            else:
                texts[-1] += self._repeated()
        self._at += 1
        return texts[-1 if self._choices.last else 0]

    def _repeated(self) -> str:
        start = self._at
        text = self._atom()
        times = _TIMES.match(self._pattern, self._at)
        if times is None:
            return text
        self._at = times.end()
        if times[0][0] == "+":
            if text == "x":
                return self._values.get("", text)
            return self._choices.space or text if text.isspace() else text
        if least := int(times["least"] or 0):
            return text * least
        if text.isspace():
            return self._choices.space
        # Any text between a name and the arguments, which may be absent as a group may.
        is_free = self._has_name and self._pattern[start] == "["
        return text if self._choices.optional and (is_free or self._pattern[start] == "(") else ""

    def _atom(self) -> str:
        match = _ATOM.match(self._pattern, self._at)
        if match is None:
            raise ValueError(f"{self._pattern!r} ends within a term")
        self._at, atom = match.end(), match[0]
        if atom in _ANCHORS:
            return ""
        if atom.startswith("("):
            text = self.alternatives()
            self._has_name = self._has_name or bool(match["name"])
            return "" if match["look"] else self._values.get(match["name"], text) if match["name"] else text
        if atom.startswith("["):
            return _of_class(atom)
        return _CLASSES.get(atom) or ("x" if atom == "." else atom.removeprefix("\\"))


def _of_class(text: str) -> str:
    """Return a character of a class such as `[^<]`."""
    char_class = re.compile(text, re.DOTALL)
    return next((char for char in "x0- \nX_.:" if char_class.match(char)), text[1:2])
