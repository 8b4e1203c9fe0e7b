"""Rules of strict mode for JSON schemas, as in OpenAI's structured outputs guide."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from responses_app.validation.errors import shorten

UNSUPPORTED = ("allOf", "oneOf", "not", "dependentRequired", "dependentSchemas", "if", "then", "else", "patternProperties")
MAX_LEVELS = 10
MAX_PROPERTIES = 5000
MAX_VALUES = 1000
MAX_NAMES = 120_000
# An enum of more than MANY_VALUES strings may have MAX_MANY characters.
MANY_VALUES, MAX_MANY = 250, 15_000


def strict_problem(schema: Mapping[str, Any]) -> str | None:
    """Return a sentence with the first broken rule of strict mode, or None."""
    if schema.get("type") != "object" or "anyOf" in schema:
        return "the root must have type 'object' and no 'anyOf'."
    size = _SchemaSize()
    for place, node, level in _walk(schema, "()", 1):
        problem = _node(node) or size.add(node)
        if problem is not None:
            return f"In context={place}, {problem}"
        if level > MAX_LEVELS and ("properties" in node or "items" in node):
            return f"In context={place}, more than {MAX_LEVELS} levels of nesting."
    return size.problem()


class _SchemaSize:
    """Counts of a strict schema: properties, enum values, and characters of names and values."""

    def __init__(self) -> None:
        self.properties = self.values = self.text = 0

    def add(self, node: Mapping[str, Any]) -> str | None:
        """Count a subschema. Return the problem of the enum, or None."""
        names = [name for word in ("properties", "$defs", "definitions") for name in _keys(node.get(word))]
        self.properties += len(_keys(node.get("properties")))
        values = node["enum"] if isinstance(node.get("enum"), list) else []
        self.values += len(values)
        texts = [one for one in (*values, node.get("const")) if isinstance(one, str)]
        self.text += sum(map(len, names)) + sum(map(len, texts))
        if len(values) > MANY_VALUES and sum(map(len, texts)) > MAX_MANY:
            return f"an enum of more than {MANY_VALUES} values may have {MAX_MANY} characters in all."
        return None

    def problem(self) -> str | None:
        """Return the exceeded total limit, or None."""
        if self.properties > MAX_PROPERTIES:
            return f"more than {MAX_PROPERTIES} properties."
        if self.values > MAX_VALUES:
            return f"more than {MAX_VALUES} values in its enums."
        return f"its names, enums and constants have more than {MAX_NAMES} characters." if self.text > MAX_NAMES else None


def _keys(node: object) -> list[str]:
    return list(node) if isinstance(node, dict) else []


def shape_problem(schema: Mapping[str, Any]) -> str | None:
    """Return the reason why a schema cannot describe function arguments, or None."""
    if schema and schema.get("type") != "object":
        declared_type = shorten(schema.get("type"))
        return f"schema must be a JSON Schema of type 'object', got type '{declared_type}'."
    properties, required = schema.get("properties", {}), schema.get("required", [])
    if not isinstance(properties, dict) or not all(isinstance(one, dict | bool) for one in properties.values()):
        return "'properties' must be an object of schemas."
    if not isinstance(required, list) or not all(isinstance(name, str) for name in required):
        return "'required' must be an array of names."
    return None


def _node(node: Mapping[str, Any]) -> str | None:
    for word in UNSUPPORTED:
        if word in node:
            return f"'{word}' is not permitted."
    if node.get("type") != "object" and "properties" not in node:
        return None
    if node.get("additionalProperties") is not False:
        return "'additionalProperties' is required to be supplied and to be false."
    properties, required = node.get("properties") or {}, node.get("required") or []
    if not isinstance(properties, dict) or not isinstance(required, list):
        return "'properties' must be an object and 'required' an array."
    required_names = {name for name in required if isinstance(name, str)}
    missing = [name for name in properties if name not in required_names]
    if missing:
        return f"'required' must name every key in properties. Missing '{missing[0]}'."
    return None


def _walk(node: Mapping[str, Any], place: str, level: int) -> Iterator[tuple[str, Mapping[str, Any], int]]:
    """Iterate over subschemas with place and level of nesting; references are not followed."""
    yield place, node, level
    if level > MAX_LEVELS:
        return
    for word in ("properties", "$defs", "definitions"):
        children = node.get(word)
        if isinstance(children, dict):
            for name, child in children.items():
                if isinstance(child, dict):
                    yield from _walk(child, f"('{word}', '{name}')", level + (word == "properties"))
    if isinstance(node.get("items"), dict):
        yield from _walk(node["items"], f"{place} items", level + 1)
    choices = node.get("anyOf")
    for child in choices if isinstance(choices, list) else ():
        if isinstance(child, dict):
            yield from _walk(child, f"{place} anyOf", level)
