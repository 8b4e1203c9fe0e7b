"""Part of a schema that calls without `strict` follow."""

from __future__ import annotations

import json
from typing import Any

import pytest

from responses_app.dialects.constraints.followed_schema import followed

# Schemas of an argument, and what is followed of them.
PARTS: list[tuple[Any, Any]] = [
    ({"type": "string", "title": "A", "examples": ["x"]}, {"type": "string", "title": "A"}),
    ({"type": "string", "minLength": 1, "maxLength": 5, "pattern": "^a"}, {"type": "string"}),
    ({"type": "string", "format": "date"}, {"type": "string", "format": "date"}),
    ({"type": "string", "format": "color"}, {"type": "string"}),
    ({"type": "integer", "minimum": -(2**53) + 1}, {"type": "integer", "minimum": -(2**53) + 1}),
    ({"type": "integer", "minimum": 0.5}, {"type": "integer"}),
    ({"type": "integer", "minimum": 1e20}, {"type": "integer"}),
    ({"type": "integer", "minimum": True}, {"type": "integer"}),
    ({"type": "integer", "minimum": 2, "maximum": 1}, {"type": "integer"}),
    ({"type": "integer", "exclusiveMinimum": 1, "exclusiveMaximum": 2}, {"type": "integer"}),
    ({"type": "integer", "minimum": 1, "maximum": 1}, {"type": "integer", "minimum": 1, "maximum": 1}),
    ({"type": "number", "minimum": 0.5, "multipleOf": 0.5}, {"type": "number", "minimum": 0.5}),
    ({"type": "number", "minimum": 1, "exclusiveMaximum": 1}, {"type": "number"}),
    ({"type": "array", "minItems": 3, "maxItems": 2}, {"type": "array"}),
    ({"type": "array", "minItems": 2, "prefixItems": [{}, {}]}, {"type": "array"}),
    ({"type": "array", "minItems": 2, "items": [{}, {}]}, {"type": "array", "minItems": 2, "items": {}}),
    ({"type": ["integer", "null"], "minimum": 1}, {"type": ["integer", "null"]}),
    ({"type": ["string", "null"], "enum": ["a", None]}, {"type": ["string", "null"], "enum": ["a", None]}),
    ({"type": "file"}, {}),
    ({"type": "string", "nullable": True}, {}),
    ({"type": "object", "patternProperties": {}}, {}),
    (
        {"type": "object", "additionalProperties": {"type": "string", "minLength": 1}},
        {"type": "object", "additionalProperties": {"type": "string"}},
    ),
    ({"anyOf": [{"type": "string", "minLength": 1}, {"type": "null"}]}, {"anyOf": [{"type": "string"}, {"type": "null"}]}),
    ({"anyOf": [{"required": ["a"]}], "type": "object"}, {}),
    ({"allOf": [{"$ref": "#/$defs/A"}], "default": 1}, {"anyOf": [{"$ref": "#/$defs/A"}], "default": 1}),
    ({"allOf": [{"type": "object"}, {"type": "object"}]}, {}),
    ({"$ref": "#/$defs/A", "description": "x"}, {"$ref": "#/$defs/A", "description": "x"}),
    ({"$ref": "#/$defs/B"}, {}),
    ({"$ref": "https://example.com/schema"}, {}),
    (True, True),
    (None, {}),
]


def _root(part: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": part}, "$defs": {"A": {"type": "integer"}}}


@pytest.mark.parametrize(("part", "followed_part"), PARTS)
def test_keywords_that_are_not_followed_are_left_out(part: Any, followed_part: Any) -> None:
    assert followed(_root(part)) == _root(followed_part)


@pytest.mark.engine
@pytest.mark.parametrize("part", [part for part, _followed in PARTS])
def test_followed_parts_can_be_compiled(part: Any) -> None:
    import xgrammar

    grammar = xgrammar.Grammar.from_json_schema(json.dumps(followed(_root(part))), strict_mode=True)
    assert "root ::=" in str(grammar)


@pytest.mark.parametrize("schema", [{"type": "object", "anyOf": [{}]}, {"type": "string"}, {"type": "object", "if": {}}])
def test_arguments_without_a_schema_that_is_followed_are_any_object(schema: dict[str, Any]) -> None:
    assert followed(schema) == {"type": "object"}


def test_tool_without_a_schema_has_none() -> None:
    assert followed({}) == {}
