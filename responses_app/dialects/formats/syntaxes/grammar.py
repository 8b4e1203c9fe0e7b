"""Parts of grammars that several syntaxes share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from responses_app.dialects.constraints.structural_tag import (
    Format,
    any_text,
    is_plain,
    json_value,
    literal,
    one_of,
    optional,
    sequence,
)
from responses_app.dialects.formats.base import Tool

# Regular expressions of scalar values, by type.
SCALARS = {"integer": r"-?\d+", "number": r"-?\d+(\.\d+)?([eE][+-]?\d+)?", "boolean": "true|false", "null": "null"}


class Parameter(NamedTuple):
    """Parameter of a tool."""

    name: str
    schema: object
    is_required: bool


def parameters(tool: Tool) -> list[Parameter] | None:
    """Return the parameters of a tool in the order of the schema; None if the schema does not list them."""
    schema = tool.get("parameters")
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    if not isinstance(schema, Mapping) or not isinstance(properties, Mapping):
        return None
    required = schema.get("required") or []
    return [Parameter(str(name), each, name in required) for name, each in properties.items()]


def separated(items: Sequence[Format], separator: str, required: Sequence[bool]) -> Format:
    """Match items in order with separators. `required` has True for each item that is not optional."""
    more = [
        sequence(literal(separator), item) if must else optional(sequence(literal(separator), item))
        for item, must in zip(items, required, strict=True)
    ]
    first_required = next((index for index, must in enumerate(required) if must), None)
    last_start = len(items) - 1 if first_required is None else first_required
    starts = [sequence(items[index], *more[index + 1 :]) for index in range(last_start + 1)]
    return one_of(starts if first_required is not None else [*starts, literal("")])


def text_value(schema: object, end: str) -> Format:
    """Match a string without quotes before the text `end`; one of the values of an enum."""
    choices = schema.get("enum") if isinstance(schema, Mapping) else None
    if isinstance(choices, list) and choices:
        return one_of([literal(str(each)) for each in choices])
    return any_text(end)


def value(schema: object) -> Format:
    """Match a JSON value of a schema, a boolean also in the notation of Python."""
    if isinstance(schema, Mapping) and schema.get("type") == "boolean" and is_plain(schema) and "enum" not in schema:
        return one_of([literal(each) for each in ("true", "false", "True", "False")])
    return json_value(schema if isinstance(schema, Mapping) else True)
