"""Parts of grammars that several syntaxes share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from responses_app.dialects.constraints.structural_tag import Format, any_text, json_value, literal, one_of, optional, sequence
from responses_app.dialects.formats.base import Tool

# Regular expressions of scalar values, by type.
SCALARS = {"integer": r"-?\d+", "number": r"-?\d+(\.\d+)?([eE][+-]?\d+)?", "boolean": "true|false", "null": "null"}


class Parameter(NamedTuple):
    """Parameter of a tool."""

    name: str
    schema: object
    is_required: bool


def parameters(tool: Tool) -> list[Parameter] | None:
    """Return the parameters of a tool, the required ones first; None if the schema does not list them."""
    schema = tool.get("parameters")
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    if not isinstance(schema, Mapping) or not isinstance(properties, Mapping):
        return None
    required = schema.get("required") or []
    found = [Parameter(str(name), each, name in required) for name, each in properties.items()]
    return sorted(found, key=lambda parameter: not parameter.is_required)


def separated(items: Sequence[Format], separator: str, required: int) -> Format:
    """Match items in order with separators, the first `required` of them in full, the others optional."""
    more = [sequence(literal(separator), item) for item in items]
    if required:
        return sequence(items[0], *more[1:required], *map(optional, more[required:]))
    starts = [sequence(item, *map(optional, more[index + 1 :])) for index, item in enumerate(items)]
    return one_of([*starts, literal("")])


def text_value(schema: object, end: str) -> Format:
    """Match a string without quotes before the text `end`; one of the values of an enum."""
    choices = schema.get("enum") if isinstance(schema, Mapping) else None
    if isinstance(choices, list) and choices:
        return one_of([literal(str(each)) for each in choices])
    return any_text(end)


def value(schema: object) -> Format:
    """Match a JSON value of a schema."""
    return json_value(schema if isinstance(schema, Mapping) else True)
