"""Optional fields of tools: some chat templates reject a tool that lacks a field, and get an empty field."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from enum import Enum
from typing import Any, TypeAlias

Fields: TypeAlias = dict[str, Any]


class ToolField(Enum):
    """Field that a template needs, in words.

    Plain types stand in the place of lists of types with `null`, object schemas in the place of `true` and `false`, and the types of
    values in `additionalProperties` of an object.
    """

    DESCRIPTION = "description"
    PARAMETERS = "parameters"
    PROPERTIES = "properties"
    PROPERTY_DESCRIPTION = "descriptions of parameters"
    PLAIN_TYPE = "types without null"
    OBJECT_SCHEMA = "schemas as objects"
    VALUE_TYPES = "types of values"


# These change schemas, the other fields are added.
CHANGED_SCHEMAS = frozenset({ToolField.PLAIN_TYPE, ToolField.OBJECT_SCHEMA, ToolField.VALUE_TYPES})
_LACKING: Mapping[ToolField, Sequence[Any]] = {
    ToolField.PROPERTY_DESCRIPTION: [{"type": "string"}],
    ToolField.PLAIN_TYPE: [{"type": ["string", "null"], "description": "A."}],
    ToolField.OBJECT_SCHEMA: [True, {"type": "array", "items": True, "description": "A."}],
    ToolField.VALUE_TYPES: [{"type": "object", "description": "A."}],
}
_PLAIN = frozenset({"string", "number", "integer", "boolean"})


def with_fields(tool: Fields, fields: Collection[ToolField]) -> Fields:
    """Return a tool of templates with those of `fields` that the tool lacks."""
    function: Fields = tool["function"]
    description = {"description": ""} if ToolField.DESCRIPTION in fields else {}
    parameters = {"parameters": {"type": "object", "properties": {}}} if ToolField.PARAMETERS in fields else {}
    function = {"name": function["name"], **description, **parameters, **function}
    if isinstance(function.get("parameters"), dict):
        function["parameters"] = _with_property_fields(function["parameters"], fields)
    return {**tool, "function": function}


def without_field(tool: Fields, field: ToolField) -> Fields:
    """Return a tool of templates, with properties, that lacks `field`."""
    function = tool["function"]
    if field in (ToolField.DESCRIPTION, ToolField.PARAMETERS):
        return {**tool, "function": {key: value for key, value in function.items() if key != field.value}}
    if field is ToolField.PROPERTIES:
        return {**tool, "function": {**function, "parameters": {"type": "object"}}}
    name = next(iter(function["parameters"]["properties"]))
    properties = {f"{name}{number or ''}": schema for number, schema in enumerate(_LACKING[field])}
    return {**tool, "function": {**function, "parameters": {"type": "object", "properties": properties}}}


def _with_property_fields(parameters: Fields, fields: Collection[ToolField]) -> Fields:
    if ToolField.PROPERTIES in fields and "properties" not in parameters:
        parameters = {**parameters, "properties": {}}
    if ToolField.OBJECT_SCHEMA in fields:
        parameters = _with_parts(parameters, _as_object)
    if ToolField.PROPERTY_DESCRIPTION in fields:
        parameters = _with_properties(
            parameters, lambda schema: schema if "description" in schema else {**schema, "description": ""}
        )
    if ToolField.PLAIN_TYPE in fields:
        parameters = _with_plain_types(parameters)
    return _with_parts(parameters, _with_value_types) if ToolField.VALUE_TYPES in fields else parameters


def _with_properties(schema: Fields, change: Callable[[Fields], Fields]) -> Fields:
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return schema
    changed = {name: change(each) if isinstance(each, dict) else each for name, each in properties.items()}
    return {**schema, "properties": changed}


def _with_parts(schema: Fields, change: Callable[[Any], Any]) -> Fields:
    """Return a schema whose properties, items and values at any depth are changed."""
    changed = dict(schema)
    if isinstance(schema.get("properties"), dict):
        changed["properties"] = {name: _with_part(each, change) for name, each in schema["properties"].items()}
    # `additionalProperties` is mostly false, which templates know.
    kinds: Mapping[str, tuple[type, ...]] = {"items": (dict, bool), "additionalProperties": (dict,)}
    parts = (key for key, kind in kinds.items() if isinstance(schema.get(key), kind))
    return changed | {key: _with_part(schema[key], change) for key in parts}


def _with_part(part: Any, change: Callable[[Any], Any]) -> Any:
    return change(_with_parts(part, change) if isinstance(part, dict) else part)


def _as_object(schema: Any) -> Any:
    if not isinstance(schema, bool):
        return schema
    return {} if schema else {"not": {}}


def _with_value_types(schema: Any) -> Any:
    """Return a schema with `additionalProperties`, of the types of the properties, if an object."""
    if not isinstance(schema, dict) or schema.get("type") != "object" or isinstance(schema.get("additionalProperties"), dict):
        return schema
    properties = schema.get("properties")
    parts = properties.values() if isinstance(properties, dict) else ()
    types = list(dict.fromkeys(each.get("type") if isinstance(each, dict) else None for each in parts))
    if not types or not all(isinstance(each, str) and each in _PLAIN for each in types):
        return {**schema, "additionalProperties": {}}
    return {**schema, "additionalProperties": {"type": types[0] if len(types) == 1 else types}}


def _with_plain_types(value: Any) -> Any:
    """Return a schema in which a list of types has no `null`, and a single type is no list."""
    if isinstance(value, list):
        return [_with_plain_types(each) for each in value]
    if not isinstance(value, dict):
        return value
    changed = {key: _with_plain_types(each) for key, each in value.items()}
    types = value.get("type")
    if isinstance(types, list) and "null" in types and (others := [each for each in types if each != "null"]):
        changed["type"] = others[0] if len(others) == 1 else others
    return changed
