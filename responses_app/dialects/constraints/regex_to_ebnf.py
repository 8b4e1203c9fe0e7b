r"""A regular expression as the right side of an EBNF rule, for text that stands inside a JSON string.

A model writes the text of a custom tool as JSON, so the rule matches the text as JSON spells it: `\n` for a line break. What the rule
matches is matched by the expression; rare spellings of the same character (`\u000a`) are left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from importlib import import_module
from re import DOTALL, IGNORECASE
from typing import Any, Final, TypeAlias

# The parser used by `re`; there is no public access to its tree.
op: Any = import_module("re._constants")
parser: Any = import_module("re._parser")
Ranges: TypeAlias = list[tuple[int, int]]
_LAST: Final = 0x10FFFF
_EVERY: Final[Ranges] = [(0, 0xD7FF), (0xE000, _LAST)]
# Characters that JSON strings contain unescaped, and the short escapes.
_UNESCAPED: Final[Ranges] = [(0x20, 0x21), (0x23, 0x5B), (0x5D, 0xD7FF), (0xE000, _LAST)]
_ESCAPES: Final = {0x22: '\\"', 0x5C: "\\\\", 0x0A: "\\n", 0x0D: "\\r", 0x09: "\\t", 0x08: "\\b", 0x0C: "\\f"}
_DIGITS: Final[Ranges] = [(0x30, 0x39)]
_SPACES: Final[Ranges] = [(0x09, 0x0D), (0x20, 0x20)]
_WORDS: Final[Ranges] = [(0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)]
MAX_REPEATS: Final = 10_000
# Characters and classes of an expression, multiplied by the repeats around them.
MAX_PARTS: Final = 50_000


class InvalidGrammar(ValueError):
    """The input cannot be converted to a grammar; the message has the reason."""


def to_ebnf(pattern: str) -> str:
    """Convert a regular expression to the right side of a rule. Raises InvalidGrammar.

    Look-around, references and lazy quantifiers are not supported.
    """
    try:
        tree = parser.parse(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise InvalidGrammar(f"the regular expression cannot be read: {error}") from error
    try:
        parts = _parts(tree)
        if parts > MAX_PARTS:
            raise InvalidGrammar(f"its repeats multiplied out are more than {MAX_PARTS} parts")
        return _sequence(_unanchored(list(tree)), tree.state.flags)
    except RecursionError as error:
        raise InvalidGrammar("the regular expression is nested too deeply") from error


def _parts(nodes: Iterable[Any]) -> int:
    """Count characters and classes, with all repeats multiplied out."""
    total = 0
    for kind, value in nodes:
        if kind is op.BRANCH:
            total += sum(_parts(branch) for branch in value[1])
        elif kind is op.SUBPATTERN:
            total += _parts(value[3])
        elif kind in (op.MAX_REPEAT, op.MIN_REPEAT):
            minimum, maximum, inner = value
            total += _parts(inner) * max(minimum if maximum is op.MAXREPEAT else maximum, 1)
        else:
            total += 1
    return total


def literal(text: str) -> str:
    """Quote `text` as a terminal."""
    return json.dumps(json.dumps(text, ensure_ascii=False)[1:-1], ensure_ascii=False)


def _unanchored(nodes: list[Any]) -> list[Any]:
    """Remove anchors at both ends: the grammar matches the whole text anyway."""
    while nodes and nodes[0] in ((op.AT, op.AT_BEGINNING), (op.AT, op.AT_BEGINNING_STRING)):
        nodes = nodes[1:]
    while nodes and nodes[-1] in ((op.AT, op.AT_END), (op.AT, op.AT_END_STRING)):
        nodes = nodes[:-1]
    return nodes


def _sequence(nodes: Iterable[Any], flags: int) -> str:
    return " ".join(_node(kind, value, flags) for kind, value in nodes) or '""'


def _node(kind: Any, value: Any, flags: int) -> str:
    if kind is op.LITERAL:
        return literal(chr(value)) if not flags & IGNORECASE else _chars(_both_cases([(value, value)]))
    if kind is op.NOT_LITERAL:
        return _chars(_complement(_cased([(value, value)], flags)))
    if kind is op.ANY:
        return _chars(_EVERY if flags & DOTALL else _complement([(0x0A, 0x0A)]))
    if kind is op.IN:
        return _chars(_class(value, flags))
    if kind is op.BRANCH:
        return "(" + " | ".join(_sequence(branch, flags) for branch in value[1]) + ")"
    if kind is op.SUBPATTERN:
        _, add, drop, inner = value
        return f"({_sequence(inner, (flags | add) & ~drop)})"
    if kind is op.MAX_REPEAT:
        minimum, maximum, inner = value
        return _repeat(minimum, maximum, inner, flags)
    raise InvalidGrammar(f"{_NAMES.get(kind, str(kind).lower())} are not supported")


_NAMES: Final = {
    op.MIN_REPEAT: "lazy quantifiers",
    op.POSSESSIVE_REPEAT: "possessive quantifiers",
    op.ATOMIC_GROUP: "atomic groups",
    op.ASSERT: "look-ahead and look-behind",
    op.ASSERT_NOT: "look-ahead and look-behind",
    op.GROUPREF: "references to groups",
    op.GROUPREF_EXISTS: "conditional groups",
    op.AT: "anchors and word boundaries inside of an expression",
}


def _repeat(minimum: int, maximum: Any, inner: Any, flags: int) -> str:
    if minimum > MAX_REPEATS or (maximum is not op.MAXREPEAT and maximum > MAX_REPEATS):
        raise InvalidGrammar(f"a part is repeated more than {MAX_REPEATS} times")
    bounds = f"{{{minimum},}}" if maximum is op.MAXREPEAT else f"{{{minimum},{maximum}}}"
    return f"({_sequence(inner, flags)}){ {(0, op.MAXREPEAT): '*', (1, op.MAXREPEAT): '+', (0, 1): '?'}.get((minimum, maximum), bounds) }"


def _class(items: Sequence[Any], flags: int) -> Ranges:
    ranges: Ranges = []
    negated = False
    for kind, value in items:
        if kind is op.NEGATE:
            negated = True
        elif kind is op.LITERAL:
            ranges.append((value, value))
        elif kind is op.RANGE:
            ranges.append(value)
        else:
            ranges += _category(value)
    ranges = _cased(ranges, flags)
    return _complement(ranges) if negated else ranges


def _category(name: Any) -> Ranges:
    plain = {op.CATEGORY_DIGIT: _DIGITS, op.CATEGORY_SPACE: _SPACES, op.CATEGORY_WORD: _WORDS}
    other = {op.CATEGORY_NOT_DIGIT: _DIGITS, op.CATEGORY_NOT_SPACE: _SPACES, op.CATEGORY_NOT_WORD: _WORDS}
    return plain[name] if name in plain else _complement(other[name])


def _cased(ranges: Ranges, flags: int) -> Ranges:
    return _both_cases(ranges) if flags & IGNORECASE else ranges


def _both_cases(ranges: Ranges) -> Ranges:
    """Add the other case of each ASCII letter, and of single non-ASCII characters."""
    out = list(ranges)
    for low, high in ranges:
        for start, shift in ((0x41, 32), (0x61, -32)):
            a, b = max(low, start), min(high, start + 25)
            out += [(a + shift, b + shift)] if a <= b else []
        if low == high and low > 0x7F:
            out += [(ord(c), ord(c)) for c in (chr(low).lower(), chr(low).upper()) if len(c) == 1]
    return out


def _complement(ranges: Ranges) -> Ranges:
    """Return the complement of the ranges."""
    out: Ranges = []
    for low, high in _EVERY:
        at = low
        for a, b in sorted(ranges):
            if b >= at and a <= high:
                out += [(at, a - 1)] if a > at else []
                at = max(at, b + 1)
        out += [(at, high)] if at <= high else []
    return out


def _chars(ranges: Ranges) -> str:
    """Return the EBNF of a character class, with characters as written in JSON."""
    bare = [
        (max(a, low), min(b, high)) for a, b in sorted(set(ranges)) for low, high in _UNESCAPED if max(a, low) <= min(b, high)
    ]
    options = ["[" + "".join(map(_range, bare)) + "]"] if bare else []
    options += [json.dumps(text) for code, text in _ESCAPES.items() if any(a <= code <= b for a, b in ranges)]
    if not options:
        raise InvalidGrammar("a class of characters has none that a text can hold")
    return options[0] if len(options) == 1 else "(" + " | ".join(options) + ")"


def _range(ends: tuple[int, int]) -> str:
    low, high = (f"\\u{end:04x}" if end <= 0xFFFF else f"\\U{end:08x}" for end in ends)
    return low if low == high else f"{low}-{high}"
