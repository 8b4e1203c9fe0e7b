"""Cost of JSON schemas for a grammar compiler, and the choice of the tools without `strict` whose calls follow their schema.

Compile time grows with the square of all schemas of a request together. The weights were measured with xgrammar 0.2.8.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from responses_app.dialects.constraints.followed_schema import Schema, followed
from responses_app.dialects.toolset import FOLLOWED, Tool

# Largest cost of the schemas of a request. The unit is a property of type string: so many take the compiler half a second, and an
# engine with 200,000 tokens about five seconds of CPU time on all its cores.
MAX_COST: Final = 1_000
_ANY_OBJECT: Final[Schema] = {"type": "object"}
# As in OpenAI's API the arguments are an empty object.
_NO_PARAMETERS: Final[Schema] = {"type": "object", "properties": {}}
# A value without a schema, once for each tool: the rules of all levels of a free value.
_FREE_VALUE: Final = 90
_FORMAT: Final = 4
_LARGE_FORMATS: Final = {"ipv6": 50, "duration": 12, "uri": 8}
_LETTERS: Final = 32
_ITEMS: Final = 8
# A repeat of more items costs no more.
_MAX_ITEMS: Final = 128
_BOUNDS: Final = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_CHOICES: Final = ("anyOf", "oneOf", "allOf")
_WITH_VALUES: Final = frozenset({"enum", "const", "$ref", *_CHOICES})


def with_followed_schemas(tools: Sequence[Tool]) -> list[Tool]:
    """Copy tools, each without `strict` with the schema that its calls follow: any object where all together cost too much.

    The cheapest schemas are followed first. Strict schemas are always followed, and count. A tool without `parameters` has none.
    """
    tools = [tool if tool.get("parameters") is not None else {**tool, "parameters": _NO_PARAMETERS} for tool in tools]
    schemas = {at: schema_to_follow(tool) for at, tool in enumerate(tools) if not tool.get("strict")}
    remaining = MAX_COST - sum(cost(tool.get("parameters") or {}) for tool in tools if tool.get("strict"))
    costs = {at: cost(schema) for at, schema in schemas.items()}
    for at in sorted(costs, key=costs.__getitem__):
        remaining -= costs[at]
        if remaining < 0 and costs[at]:
            schemas[at] = dict(_ANY_OBJECT)
    return [{**tool, FOLLOWED: schemas[at]} if at in schemas else tool for at, tool in enumerate(tools)]


def with_any_objects(tools: Sequence[Tool]) -> list[Tool]:
    """Copy tools, each without `strict` with any object as the schema that its calls follow."""
    return [tool if tool.get("strict") else {**tool, FOLLOWED: dict(_ANY_OBJECT)} for tool in tools]


def schema_to_follow(tool: Tool) -> dict[str, Any]:
    """Return the schema that the calls of a tool without `strict` follow: the chosen one, else a part of the parameters."""
    chosen: dict[str, Any] | None = tool.get(FOLLOWED)
    return followed(tool.get("parameters") or {}) if chosen is None else chosen


def cost(schema: Schema) -> int:
    """Estimate the cost of a schema; zero for any object, whose grammar all tools share."""
    if not schema or schema == _ANY_OBJECT:
        return 0
    parts = list(_parts(schema))
    own_costs = sum(_own_cost(part) for part in parts if isinstance(part, Mapping))
    return own_costs + (_FREE_VALUE if any(map(_has_free_values, parts)) else 0)


def _parts(schema: Schema) -> Iterator[Any]:
    """Iterate over the schema and all schemas inside."""
    level: list[Any] = [schema]
    while level:
        yield from level
        level = [child for part in level if isinstance(part, Mapping) for child in _children(part)]


def _children(part: Schema) -> Iterator[Any]:
    for key in ("properties", "$defs", "definitions"):
        if isinstance(part.get(key), Mapping):
            yield from part[key].values()
    for key in _CHOICES:
        if isinstance(part.get(key), list):
            yield from part[key]
    yield from (part[key] for key in ("items", "additionalProperties") if isinstance(part.get(key), Mapping))


def _own_cost(part: Schema) -> int:
    names = part.get("properties")
    letters = sum(map(len, names)) if isinstance(names, Mapping) else 0
    letters += sum(len(json.dumps(part[key])) for key in ("enum", "const") if key in part)
    digits = sum(len(str(part[key])) for key in _BOUNDS if key in part)
    total = 1 + letters // _LETTERS + digits * digits // _LETTERS
    if isinstance(part.get("maxItems"), int):
        total += min(part["maxItems"], _MAX_ITEMS) // _ITEMS
    if isinstance(part.get("format"), str):
        total += _LARGE_FORMATS.get(part["format"], _FORMAT)
    return total


def _has_free_values(part: Any) -> bool:
    """Return whether values inside a part may be any value."""
    if not isinstance(part, Mapping):
        return part is not False
    if _WITH_VALUES & set(part):
        return False
    kinds = part.get("type") or (["object"] if part.get("properties") else ["object", "array"])
    if not isinstance(kinds, (str, list)):
        # The compiler refuses the schema.
        return False
    other = part.get("additionalProperties")
    if "object" in kinds and (other is True or (other is None and "properties" not in part)):
        return True
    return "array" in kinds and not isinstance(part.get("items"), Mapping) and part.get("items") is not False
