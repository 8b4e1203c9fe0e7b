"""Argument values written as plain text, converted to JSON by the schema of the parameter."""

from __future__ import annotations

import ast
import json
import math
from collections.abc import Callable, Mapping
from typing import Any

_ALTERNATIVES = ("anyOf", "oneOf", "allOf")
_MAX_REFERENCES = 8
_BOOLEANS = {"true": True, "false": False, "1": True, "0": False}


def types_of(schema: object) -> frozenset[str]:
    """Return the JSON types that a schema allows; `string` if the schema names none."""
    if not isinstance(schema, Mapping):
        return frozenset({"string"})
    declared = schema.get("type", ())
    types = {declared} if isinstance(declared, str) else {each for each in declared if isinstance(each, str)}
    choices = schema.get("enum") or ([schema["const"]] if "const" in schema else [])
    types |= {_type_of(value) for value in choices} if isinstance(choices, list) else set()
    for key in _ALTERNATIVES:
        if isinstance(schema.get(key), list):
            types |= {each for choice in schema[key] for each in types_of(choice)}
    return frozenset(types or {"object" if "properties" in schema else "string"})


def is_text(schema: object) -> bool:
    """Return True if every value of the schema is a string, so that the text can be passed on at once."""
    return types_of(schema) == {"string"}


def to_json(text: str, schema: object) -> str:
    """Convert the text of a value to JSON by the types of the schema; other JSON stays unchanged, other text is a string."""
    types = types_of(schema)
    for name, convert in _CONVERTERS.items():
        if name in types:
            value = convert(text.strip())
            if value is not None:
                return value
    return json.dumps(text, ensure_ascii=False) if "string" in types else json_or_text(text)


def json_or_text(text: str) -> str:
    """Return `text` as JSON if it is JSON, else as a JSON string."""
    return _json(text) or json.dumps(text, ensure_ascii=False)


def with_definitions(schema: object, root: Mapping[str, Any], depth: int = _MAX_REFERENCES) -> object:
    """Return `schema` with the definitions in `root` in place of `$ref`, also in alternatives."""
    if not isinstance(schema, Mapping) or depth == 0:
        return schema
    if isinstance(schema.get("$ref"), str):
        return with_definitions(_definition(schema["$ref"], root), root, depth - 1)
    alternatives = {
        key: [with_definitions(each, root, depth - 1) for each in schema[key]]
        for key in _ALTERNATIVES
        if isinstance(schema.get(key), list)
    }
    return {**schema, **alternatives} if alternatives else schema


def _definition(reference: str, root: Mapping[str, Any]) -> object:
    """Return the schema at a JSON pointer such as `#/$defs/Place`, None if absent."""
    definition: object = root
    for part in reference.removeprefix("#").split("/")[1:]:
        definition = definition.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(definition, Mapping) else None
    return definition


def _type_of(value: Any) -> str:
    names = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
    return names.get(type(value), "null")


def _json(text: str) -> str | None:
    try:
        value = json.loads(text)
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (ValueError, RecursionError):
        return None


def as_object(text: str) -> dict[str, Any] | None:
    """Return the JSON object that `text` is, None for other text."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _null(text: str) -> str | None:
    return "null" if text.lower() in ("null", "none") else None


def _integer(text: str) -> str | None:
    try:
        return str(int(text))
    except ValueError:
        return None


def _number(text: str) -> str | None:
    """Convert a number. An integer keeps all digits, which a float would round."""
    whole = _integer(text)
    if whole is not None:
        return whole
    try:
        value = float(text)
    except ValueError:
        return None
    if not math.isfinite(value):
        return None
    return str(int(value)) if value == int(value) else str(value)


def _boolean(text: str) -> str | None:
    value = _BOOLEANS.get(text.lower())
    return None if value is None else json.dumps(value)


def _container(opening: str) -> Callable[[str], str | None]:
    return lambda text: (_json(text) or _python(text)) if text.startswith(opening) else None


def _python(text: str) -> str | None:
    """Return a Python literal as JSON: some templates show objects and lists as Python."""
    try:
        return json.dumps(ast.literal_eval(text), ensure_ascii=False, allow_nan=False)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None


_CONVERTERS: dict[str, Callable[[str], str | None]] = {
    "null": _null,
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "object": _container("{"),
    "array": _container("["),
}
