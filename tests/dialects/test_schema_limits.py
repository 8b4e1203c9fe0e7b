"""Limits of strings and arrays in a JSON schema: only where the schema has none."""

from __future__ import annotations

from typing import Any

import pytest

from responses_app.dialects.schema_limits import NO_LIMITS, SchemaLimits

LIMITS = SchemaLimits(string_length=40, array_items=3)
STRING = {"type": "string"}


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (STRING, {"type": "string", "maxLength": 40}),
        ({"type": ["string", "null"]}, {"type": ["string", "null"], "maxLength": 40}),
        ({"type": "string", "minLength": []}, {"type": "string", "minLength": [], "maxLength": 40}),
        ({"type": "string", "minLength": 50}, {"type": "string", "minLength": 50, "maxLength": 50}),
        ({"type": "array", "items": STRING}, {"type": "array", "items": {"type": "string", "maxLength": 40}, "maxItems": 3}),
        ({"type": "array", "minItems": 5}, {"type": "array", "minItems": 5, "maxItems": 5}),
        ({"anyOf": [STRING, {"type": "null"}]}, {"anyOf": [{"type": "string", "maxLength": 40}, {"type": "null"}]}),
        (
            {"$defs": {"a": STRING}, "$ref": "#/$defs/a"},
            {"$defs": {"a": {"type": "string", "maxLength": 40}}, "$ref": "#/$defs/a"},
        ),
        ({"properties": {"type": STRING}}, {"properties": {"type": {"type": "string", "maxLength": 40}}}),
    ],
)
def test_limits_of_a_schema_without_limits(schema: Any, expected: Any) -> None:
    assert LIMITS.limit(schema) == expected


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "maxLength": 4000},
        {"type": "string", "pattern": "a+"},
        {"type": "string", "format": "date"},
        {"type": "string", "enum": ["a"]},
        {"type": "array", "maxItems": 900},
        {"type": "integer"},
        {"const": {"type": "string"}},
        # For the compiler to refuse.
        {"type": 1},
        {"type": [{}]},
        True,
    ],
)
def test_schema_with_limits_is_unchanged(schema: Any) -> None:
    assert LIMITS.limit(schema) == schema


def test_no_limits_change_nothing() -> None:
    schema = {"type": "array", "items": STRING}
    assert NO_LIMITS.limit(schema) is schema


def test_object_without_a_schema_has_limits_too() -> None:
    schema = LIMITS.any_object
    assert schema["maxProperties"] == 3
    assert NO_LIMITS.any_object == {"type": "object"}
