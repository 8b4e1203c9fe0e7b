"""Part of a JSON schema that calls without `strict` follow: the keywords that grammar compilers take as JSON schema means them."""

from __future__ import annotations

from collections.abc import Mapping, Set
from math import inf
from typing import Any, Final, TypeAlias

Schema: TypeAlias = Mapping[str, Any]

_TYPES: Final = frozenset({"string", "number", "integer", "boolean", "null", "array", "object"})
_FORMATS: Final = frozenset({"date-time", "date", "time", "duration", "email", "hostname", "ipv4", "ipv6", "uuid", "uri"})
_NOTES: Final = frozenset({"$schema", "title", "description", "default"})
_TABLES: Final = ("$defs", "definitions")
# Characters of names that references write in another way.
_ESCAPED: Final = frozenset("/~%")
# Most references that are followed one after the other, and most rounds of a search through definitions.
MAX_LINKS: Final = 16
_LOWER: Final = ("minimum", "exclusiveMinimum")
_UPPER: Final = ("maximum", "exclusiveMaximum")
_SIZES: Final = ("minItems", "maxItems")
_KEPT: Final = frozenset({*_NOTES, "type", "required", "enum", "const", "format", *_LOWER, *_UPPER, *_SIZES})
_NESTED: Final = frozenset({"properties", "additionalProperties", "items", *_TABLES})
# Keywords without which more values match, or the same: what they demand is not followed. xgrammar 0.2.8 reads `pattern` as the
# pattern of the whole text, and allows no escapes, as of line breaks, in strings with a pattern or a length.
_LEFT_OUT: Final = frozenset(
    {
        *("pattern", "minLength", "maxLength", "multipleOf", "uniqueItems", "minProperties", "maxProperties", "propertyNames"),
        *("prefixItems", "additionalItems", "contains", "minContains", "maxContains", "dependentRequired", "not"),
        *("$id", "$comment", "example", "examples", "deprecated", "readOnly", "writeOnly", "discriminator"),
        *("contentMediaType", "contentEncoding"),
    }
)
# Whole numbers that the compiler and every JSON parser take, and sizes of arrays that the compiler takes.
_MAX_WHOLE: Final = 2**53
_MAX_SIZE: Final = 2**31 - 1


def followed(schema: Schema) -> dict[str, Any]:
    """Copy the schema of the arguments of a tool, without keywords that calls do not follow.

    A part with other keywords, or that no finite value matches, becomes `{}`, which any value matches. Arguments that may be no
    object become `{"type": "object"}`. A reference at the root is replaced by its definition.
    """
    root = _resolved(schema)
    if any(word in root for word in ("$ref", "anyOf", "oneOf", "allOf")) or root.get("type", "object") != "object":
        return {"type": "object"}
    names = frozenset(_definitions(root))
    part = _part(root, names)
    finite = _finite_definitions(part)
    if not names <= finite:
        part = _part(root, finite)
    return part or ({"type": "object"} if schema else {})


def _resolved(schema: Schema) -> Schema:
    """Return the definition to which a reference at the root leads, with the definitions of the root."""
    tables, definitions = {key: schema[key] for key in _TABLES if key in schema}, _definitions(schema)
    for _ in range(MAX_LINKS):
        reference = schema.get("$ref")
        target = definitions.get(reference) if isinstance(reference, str) else None
        if not isinstance(target, Mapping):
            break
        schema = {**target, **tables}
    return schema


def _definitions(root: Schema) -> dict[str, Any]:
    """Return the definitions of the root by reference, except those whose names are escaped in references."""
    tables = ((key, root.get(key)) for key in _TABLES)
    return {
        f"#/{key}/{name}": definition
        for key, table in tables
        if isinstance(table, Mapping)
        for name, definition in table.items()
        if not _ESCAPED & set(name)
    }


def _finite_definitions(root: Schema) -> frozenset[str]:
    """Return the references to definitions that a finite value matches: a schema may require itself without end."""
    definitions, finite = _definitions(root), set[str]()
    for at in range(MAX_LINKS):
        names = [name for name in definitions if name not in finite]
        before = len(finite)
        for name in names if at % 2 else reversed(names):
            if _is_finite(definitions[name], finite):
                finite.add(name)
        if len(finite) == before:
            break
    return frozenset(finite)


def _is_finite(part: Any, finite: Set[str]) -> bool:
    """Return whether a finite value matches a followed part, if one matches each definition in `finite`."""
    if not isinstance(part, Mapping) or "enum" in part or "const" in part:
        return True
    if "$ref" in part:
        return part["$ref"] in finite
    if "anyOf" in part:
        return any(_is_finite(one, finite) for one in part["anyOf"])
    if part.get("type") == "array":
        return not part.get("minItems") or _is_finite(part.get("items"), finite)
    if part.get("type", "object") != "object":
        return True
    properties, other = part.get("properties", {}), part.get("additionalProperties")
    return all(_is_finite(properties.get(name, other), finite) for name in part.get("required", ()))


def _part(schema: Any, names: frozenset[str]) -> Any:
    if not isinstance(schema, Mapping):
        return {}
    conditions = set(schema) - _NOTES - _LEFT_OUT - {*_TABLES}
    notes = {key: schema[key] for key in schema if key in _NOTES}
    if "$ref" in conditions:
        # What stands beside a reference would only exclude more.
        return {**notes, "$ref": schema["$ref"]} if isinstance(schema["$ref"], str) and schema["$ref"] in names else {}
    for word in ("anyOf", "oneOf", "allOf"):
        if conditions == {word} and isinstance(schema[word], list) and (word != "allOf" or len(schema[word]) == 1):
            # Unlike `oneOf`, `anyOf` also takes what matches two parts.
            return {**notes, "anyOf": [_part(one, names) for one in schema[word]]} if schema[word] else {}
    if not conditions <= _KEPT | _NESTED or not _has_known_type(schema):
        return {}
    if isinstance(schema.get("type"), list) and "enum" not in schema:
        # The conditions of each type would be those of a choice.
        return {**notes, "type": schema["type"]}
    if "prefixItems" in schema:
        # The conditions of `items` hold for the values behind those of `prefixItems`.
        return {**notes, "type": "array"} if schema.get("type") == "array" else {}
    remaining = {key: _value(key, schema[key], names) for key in schema if key not in _LEFT_OUT}
    for lower, upper in ((_LOWER, _UPPER), (_SIZES[:1], _SIZES[1:])):
        if not _is_range(remaining, lower, upper):
            remaining = {key: value for key, value in remaining.items() if key not in lower + upper}
    return {key: value for key, value in remaining.items() if not _is_left_out(key, value, remaining)}


def _has_known_type(schema: Schema) -> bool:
    kinds = schema.get("type", "object")
    kinds = kinds if isinstance(kinds, list) else [kinds]
    return bool(kinds) and all(isinstance(kind, str) and kind in _TYPES for kind in kinds)


def _value(key: str, value: Any, names: frozenset[str]) -> Any:
    if key in ("properties", *_TABLES) and isinstance(value, Mapping):
        return {name: _part(child, names) for name, child in value.items()}
    return _part(value, names) if key in ("items", "additionalProperties") and not isinstance(value, bool) else value


def _is_left_out(key: str, value: Any, schema: Schema) -> bool:
    """Return whether the compiler does not take the keyword `key` of `schema` with this value."""
    if key in _SIZES:
        return not isinstance(schema.get("items"), Mapping)
    if key == "required":
        return not isinstance(value, list) or not all(isinstance(name, str) for name in value)
    if key == "format":
        return not isinstance(value, str) or value not in _FORMATS
    return (key == "enum" and not (isinstance(value, list) and value)) or (
        key == "properties" and not isinstance(value, Mapping)
    )


def _is_range(schema: Schema, lower: tuple[str, ...], upper: tuple[str, ...]) -> bool:
    """Return whether the bounds are numbers that leave a range, and whole numbers except of `number`."""
    bounds = [schema[key] for key in lower + upper if key in schema]
    if any(isinstance(one, bool) or not isinstance(one, int | float) or abs(one) > _MAX_WHOLE for one in bounds):
        return False
    if lower == _SIZES[:1] and any(not isinstance(one, int) or not 0 <= one <= _MAX_SIZE for one in bounds):
        return False
    if schema.get("type") != "number" and any(one != int(one) for one in bounds):
        return False
    least, most = max(schema.get(key, -inf) for key in lower), min(schema.get(key, inf) for key in upper)
    gap = sum(key.startswith("exclusive") and key in schema for key in lower + upper)
    return bool(most - least >= gap if schema.get("type") != "number" else most > least or (most == least and not gap))
