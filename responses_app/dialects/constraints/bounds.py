"""Bounds of JSON grammars: limits on strings, digits and nesting of free values, so that a weak model cannot fill without end."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

Json: TypeAlias = dict[str, Any]

# Limits of white space in a row. In a bounded grammar `compact` means none, and `spaced` a blank after commas and colons.
# The JSON schema formats of xgrammar cannot express either, and allow one and two characters in each place.
# The limit of `any` is enough for a line break and the indentation of ten levels.
WHITE_SPACE = {"compact": 1, "spaced": 2, "any": 24}
COMPACT_WHITE_SPACE, SPACED_WHITE_SPACE, ANY_WHITE_SPACE = WHITE_SPACE.values()
# Characters of a string without `maxLength`, as written in JSON: an escape has two or six.
MAX_STRING_CHARS = 16_384
# Digits before the point, after the point and of the exponent, each.
MAX_DIGITS = 40
# Levels of arrays and objects in a value without a schema.
MAX_DEPTH = 32

_RULE = re.compile(r"^(\w+) ::= (.*)$")
# xgrammar's rule of the rest of a string begins so: with the closing quotation mark.
_STRING_END = r'(("\"") | ([^'
# xgrammar also writes a string in place of its name `basic_string`.
_STRING, _BOUNDED_STRING = r'"\"" basic_string_sub', r'"\"" basic_string_text "\""'
_STRING_RULES = {
    f"basic_string_text[max_chars={MAX_STRING_CHARS}]": "((basic_string_sub))",
    "basic_string_sub": r'("" | ([^\0-\x1f\"\\\r\n] basic_string_sub) | ("\\" basic_escape basic_string_sub))',
}
# xgrammar's rule of a character of a string with `minLength` or `maxLength`, and one without the characters that JSON forbids.
_PLAIN_CHARACTER = r"(([^\"\\\r\n]))"
_JSON_CHARACTER = r"(([^\0-\x1f\"\\\r\n]))"
_DIGIT = "(([0-9]))"
_NESTED = ("basic_any", "basic_array", "basic_object", "basic_array_items", "basic_object_properties")
_OPTIONAL_BLANKS = {'", "': '("," | ", ")', '": "': '(":" | ": ")'}
# Literals and character classes are matched whole, so that only code is replaced.
_OPEN_END = re.compile(r'(\[1-9\] \[0-9\]\*)|"(?:[^"\\]|\\.)*"|\[(?:[^\]\\]|\\.)*\]|(\w+)\{(\d+), -1\}')
_NAME = re.compile(r'"(?:[^"\\]|\\.)*"|\[(?:[^\]\\]|\\.)*\]|\w+')


def bounded_tag(value: Any, to_ebnf: Callable[[Json], str]) -> Any:
    """Copy a structural tag; each JSON schema format becomes the bounded grammar that `to_ebnf` and `bounded_ebnf` return."""
    if isinstance(value, Mapping):
        if value.get("type") == "json_schema" and value.get("style", "json") == "json" and not value.get("excludes"):
            return {"type": "grammar", "grammar": bounded_ebnf(to_ebnf(dict(value)))}
        return {key: bounded_tag(child, to_ebnf) for key, child in value.items()}
    return [bounded_tag(child, to_ebnf) for child in value] if isinstance(value, list) else value


def bounded_ebnf(text: str) -> str:
    """Bound the grammar that xgrammar makes of a JSON schema: one rule a line, with rules `basic_…` for values without bounds.

    Strings with `maxLength`, `pattern`, `format`, `enum` or `const` have rules of their own and stay as they are.
    """
    lines = [_RULE.match(line) for line in text.split("\n") if line]
    rules = {match[1]: match[2] for match in lines if match}
    if len(rules) != len(lines):
        # Not a grammar of a JSON schema as xgrammar 0.2.8 writes it.
        return text
    for name, body in rules.items():
        # xgrammar 0.2.8 writes a blank after the comma in free values, whatever the separators.
        rules[name] = _bound_repeats(body, rules).replace('(", " basic_', '("," basic_')
    if rules.get("basic_string_sub", "").startswith(_STRING_END):
        rules = {name: body.replace(_STRING, _BOUNDED_STRING) for name, body in rules.items()} | _STRING_RULES
    rules = {name: _JSON_CHARACTER if body == _PLAIN_CHARACTER else body for name, body in rules.items()}
    if any(set(_names(body)) & set(_NESTED) for name, body in rules.items() if name not in _NESTED):
        rules |= _levels(rules)
    return "".join(f"{name} ::= {body}\n" for name, body in rules.items())


def allow_blanks(text: str) -> str:
    """Make the blank optional in the separators `, ` and `: ` of a grammar."""
    return _NAME.sub(lambda match: _OPTIONAL_BLANKS.get(match[0], match[0]), text)


def _bound_repeats(body: str, rules: Mapping[str, str]) -> str:
    """Limit the repeats of digits and of characters in a rule."""

    def bound(match: re.Match[str]) -> str:
        if match[1]:
            return f"[1-9] [0-9]{{0, {MAX_DIGITS - 1}}}"
        name, least = match[2], int(match[3] or 0)
        if name and rules.get(name) == _DIGIT:
            return f"{name}{{{least}, {max(MAX_DIGITS, least)}}}"
        if name and rules.get(name) == _PLAIN_CHARACTER:
            return f"{name}{{{least}, {least}}} basic_string_text" if least else "basic_string_text"
        return match[0]

    return _OPEN_END.sub(bound, body)


def _names(body: str) -> list[str]:
    return [each for each in _NAME.findall(body) if each[0] not in '"[']


def _levels(rules: Mapping[str, str]) -> dict[str, str]:
    """Return the rules of free values once per level; the outermost level has the usual names, the innermost only scalars."""
    scalars = rules["basic_any"].replace(" | (basic_array) | (basic_object)", "")
    levels = {_at(0, "basic_any"): scalars}
    for level in range(1, MAX_DEPTH + 1):
        for name in _NESTED:
            levels[_at(level, name)] = _refer(rules[name], level, inner=name != "basic_any")
    return levels


def _at(level: int, name: str) -> str:
    return name if level == MAX_DEPTH else f"{name}_level_{level}"


def _refer(body: str, level: int, *, inner: bool) -> str:
    """Name the rules of a level in `body`; with `inner`, values belong to the next level inside."""

    def rename(match: re.Match[str]) -> str:
        if match[0] not in _NESTED:
            return match[0]
        return _at(level - 1 if inner and match[0] == "basic_any" else level, match[0])

    return _NAME.sub(rename, body)
