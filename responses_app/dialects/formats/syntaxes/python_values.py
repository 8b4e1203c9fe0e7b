"""Grammar of Python values: JSON values, or the notation of Python for strings, booleans and null."""

from __future__ import annotations

import json
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

_SINGLE_QUOTED = regex(r"'([^'\\\n]|\\[^\n])*'")
_SPACE = regex(" ?")
_NAMES = {"boolean": ("true", "false", "True", "False"), "null": ("null", "None")}


def python_value(schema: object) -> Format:
    """Match a value of a schema in the notation of JSON or Python; only JSON if the schema has rules beyond types."""
    if not isinstance(schema, Mapping) or not is_plain(schema):
        return json_value(schema if isinstance(schema, Mapping) else True)
    if isinstance(schema.get("enum"), list):
        return one_of([literal(text) for value in schema["enum"] for text in _written(value)] or [json_value(dict(schema))])
    kind = str(schema.get("type", ""))
    build = {"string": _string, "array": _array, "object": _object}.get(kind)
    if build is not None:
        return build(schema)
    names = _NAMES.get(kind)
    return one_of([literal(name) for name in names]) if names else json_value(schema)


def _written(value: Any) -> list[str]:
    """Return the texts of a value in JSON and in Python, without repetition."""
    return list(dict.fromkeys((json.dumps(value, ensure_ascii=False), repr(value))))


def _string(schema: Mapping[str, Any]) -> Format:
    return one_of([json_value(schema), _SINGLE_QUOTED])


def _array(schema: Mapping[str, Any]) -> Format:
    if "items" not in schema:
        return json_value(schema)
    items = tags([tag("", sequence(_SPACE, python_value(schema["items"])), "")], ",", only_one=False)
    return sequence(literal("["), optional(items), literal("]"))


def _object(schema: Mapping[str, Any]) -> Format:
    found = parameters({"parameters": schema})
    if not found:
        return json_value(schema)
    items = [sequence(_SPACE, _key(each.name), _SPACE, python_value(each.schema)) for each in found]
    return sequence(literal("{"), separated(items, ",", [each.is_required for each in found]), literal("}"))


def _key(name: str) -> Format:
    return one_of([literal(f'"{name}":'), literal(f"'{name}':")])
