"""Part of a schema that calls without `strict` follow."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings, strategies

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
    ({"type": "array", "items": {}, "minItems": 2**31}, {"type": "array", "items": {}}),
    ({"type": "array", "minItems": 2, "prefixItems": [{}, {}]}, {"type": "array"}),
    ({"type": "array", "minItems": 2, "prefixItems": [{}, {}], "items": {"type": "null"}}, {"type": "array"}),
    ({"prefixItems": [{}, {}]}, {}),
    ({"type": "array", "minItems": 2, "items": False}, {"type": "array", "items": False}),
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
    (True, {}),
    (False, {}),
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


# Values of keywords, right and wrong ones.
SCALARS: strategies.SearchStrategy[Any] = strategies.sampled_from([None, True, 0, 1, 2, -1, 2.5, 1e30, "a", 'a\n"', [], {}])
TYPES = strategies.sampled_from(["string", "number", "integer", "boolean", "null", "array", "object", "file"])
FORMATS = strategies.sampled_from(
    ["date", "date-time", "time", "email", "hostname", "ipv4", "ipv6", "uuid", "uri", "duration", "x"]
)
REFERENCES = strategies.sampled_from(["#/$defs/A", "#/$defs/B", "#", "#/properties/a"])
NAMES = strategies.sampled_from(["a", "b", 'c"'])
BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minItems", "maxItems", "minLength", "maxLength")


def _schemas(inner: strategies.SearchStrategy[Any]) -> strategies.SearchStrategy[Any]:
    numbers = strategies.integers(-3, 3) | strategies.floats(-3, 3) | SCALARS
    lists = strategies.lists(inner, max_size=3)
    keywords: dict[str, strategies.SearchStrategy[Any]] = {
        **dict.fromkeys(BOUNDS, numbers),
        **dict.fromkeys(("anyOf", "oneOf", "allOf", "prefixItems"), lists),
        **dict.fromkeys(("additionalProperties", "items"), inner | lists | SCALARS),
        "type": TYPES | strategies.lists(TYPES, max_size=3) | SCALARS,
        "enum": strategies.lists(SCALARS, max_size=3) | SCALARS,
        "const": SCALARS,
        "format": FORMATS | SCALARS,
        "properties": strategies.dictionaries(NAMES, inner, max_size=3) | SCALARS,
        "required": strategies.lists(NAMES | SCALARS, max_size=3) | SCALARS,
        "$ref": REFERENCES | SCALARS,
    }
    names = strategies.lists(strategies.sampled_from(sorted(keywords)), max_size=4, unique=True)
    return names.flatmap(lambda chosen: strategies.fixed_dictionaries({name: keywords[name] for name in chosen}))


@pytest.mark.engine
@given(strategies.recursive(strategies.booleans() | strategies.just({}), _schemas, max_leaves=6))
@settings(max_examples=300, deadline=None)
def test_every_schema_leaves_one_that_can_be_compiled(part: Any) -> None:
    import xgrammar

    grammar = xgrammar.Grammar.from_json_schema(json.dumps(followed(_root(part))), strict_mode=True)
    assert "root ::=" in str(grammar)


@pytest.mark.parametrize("schema", [{"type": "object", "anyOf": [{}]}, {"type": "string"}, {"type": "object", "if": {}}])
def test_arguments_without_a_schema_that_is_followed_are_any_object(schema: dict[str, Any]) -> None:
    assert followed(schema) == {"type": "object"}


def test_tool_without_a_schema_has_none() -> None:
    assert followed({}) == {}


NODE = {"type": "object", "properties": {"next": {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]}}, "required": ["next"]}


@pytest.mark.parametrize("more", [{}, {"type": "object"}, {"description": "A list"}])
def test_reference_at_the_root_is_replaced_by_its_definition(more: dict[str, Any]) -> None:
    schema = {"$ref": "#/$defs/Node", "$defs": {"Node": NODE}, **more}
    assert followed(schema) == {**NODE, "$defs": {"Node": NODE}}


def test_reference_at_the_root_to_no_object_is_any_object() -> None:
    assert followed({"$ref": "#/$defs/A", "$defs": {"A": {"type": "string"}}}) == {"type": "object"}
    assert followed({"$ref": "#/$defs/B", "$defs": {"A": NODE}, "type": "object"}) == {"type": "object"}
    assert followed({"allOf": [{"$ref": "#/$defs/A"}], "$defs": {"A": NODE}}) == {"type": "object"}


def test_definition_with_an_escaped_name_is_not_followed() -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {"a": {"$ref": "#/$defs/a~1b"}, "b": {"$ref": "#/$defs/a/b"}}}
    schema["$defs"] = {"a/b": NODE, "a~1b": NODE}
    assert followed(schema)["properties"] == {"a": {}, "b": {}}


@pytest.mark.parametrize(
    ("definition", "free"),
    [
        ({"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "required": ["a"]}, True),
        ({"properties": {"a": {"$ref": "#/$defs/A"}}, "required": ["a"]}, True),
        ({"additionalProperties": {"$ref": "#/$defs/A"}, "required": ["a"]}, True),
        ({"type": "array", "items": {"$ref": "#/$defs/A"}, "minItems": 1}, True),
        (
            {
                "anyOf": [
                    {"$ref": "#/$defs/A"},
                    {"type": "object", "required": ["a"], "properties": {"a": {"$ref": "#/$defs/A"}}},
                ]
            },
            True,
        ),
        ({"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}}, False),
        ({"type": "array", "items": {"$ref": "#/$defs/A"}}, False),
        ({"anyOf": [{"$ref": "#/$defs/A"}, {"type": "null"}]}, False),
    ],
)
def test_schema_that_requires_itself_without_end_is_not_followed(definition: Any, free: bool) -> None:
    reference = {"$ref": "#/$defs/A"}
    schema = {"type": "object", "properties": {"a": reference, "b": {"type": "string"}}, "$defs": {"A": definition}}
    assert followed(schema)["properties"] == {"a": {} if free else reference, "b": {"type": "string"}}


def test_long_chain_of_definitions_is_followed() -> None:
    links = {
        f"N{n}": {"type": "object", "properties": {"a": {"$ref": f"#/$defs/N{n + 1}"}}, "required": ["a"]} for n in range(200)
    }
    for table in (links, dict(reversed(links.items()))):
        schema = {"type": "object", "properties": {"a": {"$ref": "#/$defs/N0"}}, "$defs": {**table, "N200": {"type": "null"}}}
        assert followed(schema) == schema
