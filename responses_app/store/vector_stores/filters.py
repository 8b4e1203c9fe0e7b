"""Attribute filters of the API, compiled to SQL over a jsonb column. Every key and value becomes a parameter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

import orjson

Json: TypeAlias = Mapping[str, Any]
Condition: TypeAlias = tuple[str, list[Any]]

_ORDER: Final = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}
NO_MATCH: Final = "FALSE"
EVERY_MATCH: Final = "TRUE"


def compile_filter(filters: Json, column: str) -> Condition:
    """Return the SQL condition of `filters` over the jsonb `column`, and the parameters of the condition.

    A file without the attribute matches `ne` and `nin`, and no other comparison. Values of different types differ.
    """
    kind = filters["type"]
    if kind in ("and", "or"):
        return _join([compile_filter(one, column) for one in filters["filters"]], kind)
    key, value = filters["key"], filters["value"]
    if kind in ("in", "nin"):
        return _membership(key, value, column, negated=kind == "nin")
    if kind in _ORDER:
        return _comparison(key, value, column, _ORDER[kind])
    return _membership(key, [value], column, negated=kind == "ne")


def _join(conditions: Sequence[Condition], kind: str) -> Condition:
    if not conditions:
        return (EVERY_MATCH if kind == "and" else NO_MATCH), []
    text = f" {kind.upper()} ".join(f"({sql})" for sql, _ in conditions)
    return text, [value for _, values in conditions for value in values]


def _membership(key: str, values: Sequence[Any], column: str, *, negated: bool) -> Condition:
    """Return the condition that the attribute is among `values`. jsonb compares numbers by value: 1 equals 1.0."""
    if not values:
        return (EVERY_MATCH if negated else NO_MATCH), []
    places = ", ".join(["%s::jsonb"] * len(values))
    text = f"COALESCE({column} -> %s IN ({places}), FALSE)"
    return (f"NOT {text}" if negated else text), [_clean(key), *map(_as_json, values)]


def _comparison(key: str, value: Any, column: str, operator: str) -> Condition:
    """Return the condition of an order. jsonb orders values of different types too, so the types are compared before."""
    text = f"COALESCE(jsonb_typeof({column} -> %s) = jsonb_typeof(%s::jsonb) AND {column} -> %s {operator} %s::jsonb, FALSE)"
    given = _as_json(value)
    return text, [_clean(key), given, _clean(key), given]


def _as_json(value: Any) -> str:
    return orjson.dumps(_clean(value) if isinstance(value, str) else value).decode()


def _clean(text: str) -> str:
    """Return `text` without NUL, which Postgres cannot hold, as attributes are stored without NUL."""
    return text.replace("\0", "")
