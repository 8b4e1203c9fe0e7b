"""The rules of strict JSON schemas (responses-api.md §3.14), as one walk that names the first rule broken and where."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from responses_app.api.problems import shorten

UNSUPPORTED = ("allOf", "oneOf", "not", "dependentRequired", "dependentSchemas", "if", "then", "else", "patternProperties")
MAX_LEVELS = 10
MAX_PROPERTIES = 5000


def conforms(schema: Mapping[str, Any]) -> str | None:
    """None where `schema` meets the strict rules, else a sentence that says which one it breaks."""
    if schema.get("type") != "object" or "anyOf" in schema:
        return "the root must have type 'object' and no 'anyOf'."
    count = 0
    for place, node, level in _walk(schema, "()", 1):
        problem = _node(node)
        if problem is not None:
            return f"In context={place}, {problem}"
        if level > MAX_LEVELS:
            return f"In context={place}, more than {MAX_LEVELS} levels of nesting."
        properties = node.get("properties")
        count += len(properties) if isinstance(properties, dict) else 0
    return f"more than {MAX_PROPERTIES} properties." if count > MAX_PROPERTIES else None


def misshapen(schema: Mapping[str, Any]) -> str | None:
    """None where `schema` could describe the arguments of a function at all, strict or not, else what is wrong."""
    if schema and schema.get("type") != "object":
        given = shorten(schema.get("type"))
        return f"schema must be a JSON Schema of type 'object', got type '{given}'."
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
    missing = [name for name in properties if name not in required]
    if missing:
        return f"'required' must name every key in properties. Missing '{missing[0]}'."
    return None


def _walk(node: Mapping[str, Any], place: str, level: int) -> Iterator[tuple[str, Mapping[str, Any], int]]:
    """Every subschema with its place and its level of nesting, in order; references are not followed."""
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
