"""Attribute filters of the API, compiled to SQL over a jsonb column. Every key and value becomes a named parameter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

import orjson

Json: TypeAlias = Mapping[str, Any]
# SQL with named parameters, and the values of the parameters.
Condition: TypeAlias = tuple[str, Mapping[str, Any]]

_ORDER: Final = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}


def compile_filter(filters: Json, column: str) -> Condition:
    """Return the SQL condition of `filters` over the jsonb `column`.

    A file without the attribute matches `ne` and `nin`, and no other comparison. Values of different types differ.
    """
    values: dict[str, Any] = {}
    return _compile(filters, column, values), values


def _compile(filters: Json, column: str, values: dict[str, Any]) -> str:
    kind = filters["type"]
    if kind in ("and", "or"):
        return _join([_compile(one, column, values) for one in filters["filters"]], kind)
    attribute = f"{column} -> {_parameter(storable_text(filters['key']), values)}"
    value = filters["value"]
    if kind in _ORDER:
        return _comparison(attribute, _json_parameter(value, values), _ORDER[kind])
    places = [_json_parameter(one, values) for one in (value if kind in ("in", "nin") else [value])]
    return _membership(attribute, places, negated=kind in ("ne", "nin"))


def _join(conditions: Sequence[str], kind: str) -> str:
    if not conditions:
        return "TRUE" if kind == "and" else "FALSE"
    return f" {kind.upper()} ".join(f"({condition})" for condition in conditions)


def _membership(attribute: str, places: Sequence[str], *, negated: bool) -> str:
    """Return the condition that the attribute is among the values. jsonb compares numbers by value: 1 equals 1.0."""
    if not places:
        return "TRUE" if negated else "FALSE"
    text = f"COALESCE({attribute} IN ({', '.join(places)}), FALSE)"
    return f"NOT {text}" if negated else text


def _comparison(attribute: str, place: str, operator: str) -> str:
    """Return the condition of an order. jsonb also orders values of different types, so the condition compares the types too."""
    return f"COALESCE(jsonb_typeof({attribute}) = jsonb_typeof({place}) AND {attribute} {operator} {place}, FALSE)"


def _json_parameter(value: Any, values: dict[str, Any]) -> str:
    encoded = orjson.dumps(storable_text(value) if isinstance(value, str) else value).decode()
    return f"{_parameter(encoded, values)}::jsonb"


def _parameter(value: str, values: dict[str, Any]) -> str:
    name = f"filter_{len(values)}"
    values[name] = value
    return f"%({name})s"


def storable_text(text: str) -> str:
    """Return `text` without NUL and lone surrogates, which Postgres cannot hold. Attributes have neither."""
    return text.replace("\0", "").encode("utf-8", "replace").decode()
