"""Limits of strings and arrays in a JSON schema, for models that do not end them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# Keywords that bound a string already.
_BOUNDS_OF_STRINGS = frozenset({"maxLength", "pattern", "format", "enum", "const"})
_MAPS_OF_SCHEMAS = ("properties", "$defs", "definitions")
_LISTS_OF_SCHEMAS = ("anyOf", "oneOf", "allOf", "prefixItems")
_SCHEMAS = ("items", "additionalProperties")
_SCALARS = ("number", "boolean", "null")


@dataclass(frozen=True, slots=True)
class SchemaLimits:
    """Longest string in characters, and largest number of items of an array; None leaves both as they are."""

    string_length: int | None = None
    array_items: int | None = None

    def limit(self, schema: Any) -> Any:
        """Copy a schema, with limits where the schema has none. Keywords of a wrong type stay, for the compiler to refuse."""
        if not isinstance(schema, Mapping) or (self.string_length is None and self.array_items is None):
            return schema
        limited = {key: self._limit_keyword(key, value) for key, value in schema.items()}
        types = schema.get("type")
        names = [name for name in (types if isinstance(types, list) else [types]) if isinstance(name, str)]
        if "string" in names and self.string_length is not None and not _BOUNDS_OF_STRINGS & set(schema):
            limited["maxLength"] = max(self.string_length, _least(schema, "minLength"))
        if "array" in names and self.array_items is not None and not {"maxItems", "enum", "const"} & set(schema):
            limited["maxItems"] = max(self.array_items, _least(schema, "minItems"))
        return limited

    @property
    def any_object(self) -> dict[str, Any]:
        """Schema of an object without a schema. With limits its values are scalars, and its size is limited."""
        if self.string_length is None:
            return {"type": "object"}
        values = [{"type": "string", "maxLength": self.string_length}, *({"type": name} for name in _SCALARS)]
        key = f"[a-z_]{{1,{self.string_length}}}"
        return {"type": "object", "patternProperties": {f"^{key}$": {"anyOf": values}}, "maxProperties": self.array_items}

    def _limit_keyword(self, key: str, value: Any) -> Any:
        if key in _MAPS_OF_SCHEMAS and isinstance(value, Mapping):
            return {name: self.limit(child) for name, child in value.items()}
        if key in _LISTS_OF_SCHEMAS and isinstance(value, list):
            return [self.limit(child) for child in value]
        return self.limit(value) if key in _SCHEMAS else value


def _least(schema: Mapping[str, Any], key: str) -> int:
    least = schema.get(key)
    return int(least) if isinstance(least, int | float) else 0


NO_LIMITS = SchemaLimits()
