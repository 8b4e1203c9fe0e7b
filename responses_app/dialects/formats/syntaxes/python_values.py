"""Python values in calls: the grammar, the end of a value in generated text, and the conversion to JSON.

The grammar has JSON values, or the notation of Python for strings, booleans and null. Models also write strings with quotes and
line breaks that Python would refuse, such as `'sed -n '1,5p' a.txt'`.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping
from typing import Any

from responses_app.dialects.constraints.structural_tag import (
    Format,
    is_plain,
    json_value,
    literal,
    one_of,
    optional,
    regex,
    sequence,
    tag,
    tags,
)
from responses_app.dialects.formats.syntaxes.grammar import parameters, separated

_SINGLE_QUOTED_CHAR = r"([^'\\\n]|\\[^\n])"
_SINGLE_QUOTED = regex(f"'{_SINGLE_QUOTED_CHAR}*'")
# Keywords of a schema without rules, and the rules of strings that a regular expression has.
_NOTES, _LENGTHS = frozenset({"type", "title", "description", "default"}), frozenset({"minLength", "maxLength"})
# Longest string that the grammar counts.
_MAX_COUNTED = 4096
_SPACE = regex(" ?")
_NAMES = {"boolean": ("true", "false", "True", "False"), "null": ("null", "None")}
_CONSTANTS = {"true": True, "false": False, "null": None}
# Number of characters behind a quote that decide if the quote ends a string.
_MAX_LOOKAHEAD = 256
_NEXT_KEY = re.compile(r",\s*(\w*)\s*(.?)", re.DOTALL)
# Python refuses such integers, as in `month=07`.
_LEADING_ZERO = re.compile(r"-?0\d{1,20}", re.ASCII)
_QUOTED = re.compile(r"""(["'])(.*)\1\Z""", re.DOTALL)
# Strings that Python joins, with a space between; `'it''s'` and `'the 'r' in'` are strings whose inner quotes lack a backslash.
_STRING = r"""(?:'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*")"""
_STRINGS = re.compile(rf"{_STRING}(?:\s+{_STRING})*", re.DOTALL)
_ESCAPE = re.compile(r"""\\([ntr"'\\])""")
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r"}


def python_value(schema: object) -> Format:
    """Match a value of a schema in the notation of JSON or Python; only JSON for rules beyond types and lengths of strings."""
    if not isinstance(schema, Mapping):
        return json_value(True)
    if choices := _alternatives(schema):
        return one_of([python_value(choice) for choice in choices])
    if schema.get("type") == "string" and set(schema) <= _NOTES | _LENGTHS:
        return _string(schema)
    # The values inside of a list or object have rules of their own.
    if not is_plain({key: value for key, value in schema.items() if key not in ("items", "properties")}):
        return json_value(schema)
    if not set(schema) - _NOTES:
        return one_of([json_value(True), _SINGLE_QUOTED, *(literal(name) for name in ("True", "False", "None"))])
    if isinstance(schema.get("enum"), list):
        return one_of([literal(text) for value in schema["enum"] for text in _written(value)] or [json_value(dict(schema))])
    kind = str(schema.get("type", ""))
    build = {"string": _string, "array": _array, "object": _object}.get(kind)
    if build is not None:
        return build(schema)
    names = _NAMES.get(kind)
    return one_of([literal(name) for name in names]) if names else json_value(schema)


def _alternatives(schema: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the schemas of which a value may match any."""
    if isinstance(schema.get("type"), list) and "enum" not in schema:
        return [{**schema, "type": kind} for kind in schema["type"]]
    choices = schema.get("anyOf")
    is_union = isinstance(choices, list) and set(schema) <= {"anyOf", *_NOTES}
    return [choice for choice in choices or [] if isinstance(choice, Mapping)] if is_union else []


def _written(value: Any) -> list[str]:
    """Return the texts of a value in JSON and in Python, without repetition."""
    return list(dict.fromkeys((json.dumps(value, ensure_ascii=False), repr(value))))


def _string(schema: Mapping[str, Any]) -> Format:
    least, most = schema.get("minLength"), schema.get("maxLength")
    if least is None and most is None:
        return one_of([json_value(schema), _SINGLE_QUOTED])
    if not isinstance(most or 0, int) or (most or 0) > _MAX_COUNTED:
        return json_value(schema)
    return one_of([json_value(schema), regex(f"'{_SINGLE_QUOTED_CHAR}{{{least or 0},{'' if most is None else most}}}'")])


def _array(schema: Mapping[str, Any]) -> Format:
    if "items" not in schema:
        return json_value(schema)
    items = tags([tag("", sequence(_SPACE, python_value(schema["items"])), "")], ",", only_one=False)
    return sequence(literal("["), optional(items), literal("]"))


def _object(schema: Mapping[str, Any]) -> Format:
    object_parameters = parameters({"parameters": schema})
    if not object_parameters:
        return json_value(schema)
    items = [sequence(_SPACE, _key(each.name), _SPACE, python_value(each.schema)) for each in object_parameters]
    return sequence(literal("{"), separated(items, ",", [each.is_required for each in object_parameters]), literal("}"))


def _key(name: str) -> Format:
    return one_of([literal(f'"{name}":'), literal(f"'{name}':")])


class PythonValueScanner:
    """Search for the end of a Python value: brackets and quotes that are open. `call_end` stands behind each call."""

    def __init__(self, call_end: str = "") -> None:
        self._call_end = call_end
        self._depth = 0
        self._quote = ""
        self._is_escaped = False

    def read(self, text: str, *, closed: bool) -> tuple[int, bool]:
        """Return the number of characters of `text` that belong to the value, and True if the value ends there.

        A quote with too little text behind is not yet read, unless `closed`.
        """
        for index, char in enumerate(text):
            if self._quote:
                if not self._read_in_string(char, text[index + 1 : index + 1 + _MAX_LOOKAHEAD], closed=closed):
                    return index, False
            elif self._depth == 0 and char in ",)":
                return index, True
            elif char in "\"'":
                self._quote = char
            else:
                self._depth += (char in "([{") - (char in ")]}")
        return len(text), False

    def _read_in_string(self, char: str, following_text: str, *, closed: bool) -> bool:
        """Read a character of a string, with `following_text` behind. Return False if more text is needed."""
        if self._is_escaped:
            self._is_escaped = False
        elif char == "\\":
            self._is_escaped = True
        elif char == self._quote:
            ends = _ends_string(following_text, self._call_end, is_nested=self._depth > 0)
            if ends is None and not closed and len(following_text) < _MAX_LOOKAHEAD:
                return False
            self._quote = char if ends is False else ""
        return True


def _ends_string(following_text: str, call_end: str, *, is_nested: bool) -> bool | None:
    """Return True if a quote with `following_text` behind ends a string, None if `rest` is too short."""
    following_text = following_text.lstrip()
    if not following_text:
        return None
    if is_nested:
        return following_text[0] in ",:]})"
    if following_text[0] == ")":
        behind = following_text[1:].lstrip().removeprefix(call_end).lstrip()
        return behind[0] not in ")\"'+.%" if behind else None
    following = _NEXT_KEY.match(following_text)
    if following is None:
        return False
    if not following[2]:
        return None
    return following[2] == ("=" if following[1] else ")")


def python_to_json(text: str) -> str:
    """Convert a Python or JSON literal to JSON; other text becomes a string."""
    text = text.strip()
    if _LEADING_ZERO.fullmatch(text):
        return str(int(text))
    if _has_bare_quotes(text):
        return json.dumps(_unquoted(text), ensure_ascii=False)
    for candidate in (text, text.replace("\n", "\\n")):
        try:
            tree = _JsonLiterals().visit(ast.parse(candidate, mode="eval"))
            return json.dumps(ast.literal_eval(tree), ensure_ascii=False, allow_nan=False)
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            continue
    return json.dumps(_unquoted(text), ensure_ascii=False)


def _has_bare_quotes(text: str) -> bool:
    """Return True for a string in quotes with the same quotes inside, which lack a backslash."""
    return bool(_QUOTED.match(text)) and not text.startswith(("'''", '"""')) and not _STRINGS.fullmatch(text)


def _unquoted(text: str) -> str:
    """Return the inside of a string in quotes, whose inner quotes may lack a backslash."""
    match = _QUOTED.match(text)
    return _ESCAPE.sub(lambda escape: _ESCAPED.get(escape[1], escape[1]), match[2]) if match else text


class _JsonLiterals(ast.NodeTransformer):
    """Names of JSON become constants, and sets become lists in the order of the text."""

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Return the constant of `true`, `false` and `null`."""
        return ast.Constant(_CONSTANTS[node.id]) if node.id in _CONSTANTS else node

    def visit_Set(self, node: ast.Set) -> ast.List:
        """Return a list."""
        return ast.List([self.visit(each) for each in node.elts], ast.Load())
