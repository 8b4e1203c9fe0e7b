"""Optional fields of tools: some chat templates reject a tool that lacks a field, and get an empty field."""

from __future__ import annotations

from collections.abc import Callable, Collection
from enum import Enum
from typing import Any, TypeAlias

Fields: TypeAlias = dict[str, Any]


class ToolField(Enum):
    """Field that a template needs, in words. Plain types stand in the place of lists of types with `null`."""

    DESCRIPTION = "description"
    PARAMETERS = "parameters"
    PROPERTIES = "properties"
    PROPERTY_DESCRIPTION = "descriptions of parameters"
    PLAIN_TYPE = "types without null"


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
    """Return a tool of templates, with a property, that lacks `field`."""
    function = tool["function"]
    if field in (ToolField.DESCRIPTION, ToolField.PARAMETERS):
        return {**tool, "function": {key: value for key, value in function.items() if key != field.value}}
    if field is ToolField.PROPERTIES:
        return {**tool, "function": {**function, "parameters": {"type": "object"}}}
    name = next(iter(function["parameters"]["properties"]))
    schema = (
        {"type": "string"} if field is ToolField.PROPERTY_DESCRIPTION else {"type": ["string", "null"], "description": "A."}
    )
    return {**tool, "function": {**function, "parameters": {"type": "object", "properties": {name: schema}}}}


def _with_property_fields(parameters: Fields, fields: Collection[ToolField]) -> Fields:
    if ToolField.PROPERTIES in fields and "properties" not in parameters:
        parameters = {**parameters, "properties": {}}
    if ToolField.PROPERTY_DESCRIPTION in fields:
        parameters = _with_properties(
            parameters, lambda schema: schema if "description" in schema else {**schema, "description": ""}
        )
    return _with_plain_types(parameters) if ToolField.PLAIN_TYPE in fields else parameters


def _with_properties(schema: Fields, change: Callable[[Fields], Fields]) -> Fields:
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return schema
    changed = {name: change(each) if isinstance(each, dict) else each for name, each in properties.items()}
    return {**schema, "properties": changed}


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
