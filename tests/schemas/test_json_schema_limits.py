"""Schemas that no engine can follow, strict or not, are refused before one tries."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from responses_app.compiler import compiler
from responses_app.compiler.jobs import CompileJob
from responses_app.schemas.json_schema import limits
from responses_app.schemas.json_schema.limits import complexity_problem
from tests.support.api.case import ApiCase

TEXT: dict[str, Any] = {"type": "string"}


def holding(one: Any, **defs: Any) -> dict[str, Any]:
    """Return the schema of an object with one property."""
    return {"type": "object", "properties": {"a": one}, "$defs": defs}


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"allOf": [TEXT, {"$ref": "#"}]},
        {"oneOf": [{"$ref": "#"}]},
        holding({"$ref": "#/properties/a"}),
        holding({"$ref": "#/$defs/b"}, b={"$ref": "#/$defs/c"}, c={"anyOf": [{"$ref": "#/$defs/b"}]}),
        holding({"$ref": "#/$defs/b~1c/allOf/0"}, **{"b/c": {"allOf": [{"$ref": "#/$defs/b~1c"}]}}),
    ],
)
def test_a_reference_that_leads_back_to_itself_is_found(schema: dict[str, Any]) -> None:
    assert "leads back to itself" in (complexity_problem(schema) or "")


@pytest.mark.parametrize(
    "schema",
    [
        holding({"$ref": "#"}),
        holding({"$ref": "#/$defs/tree"}, tree={"type": "array", "items": {"$ref": "#/$defs/tree"}}),
        {"anyOf": [{"$ref": "#"}, TEXT]},
        holding({"$ref": "#/$defs/b"}, b={"$ref": "#/$defs/c"}, c=TEXT),
        holding({"enum": [{"$ref": "#"}]}),
        holding({"$ref": "https://elsewhere.example/schema"}),
        {"type": "object", "properties": {"$ref": TEXT, "enum": TEXT}},
        holding({"enum": list(range(limits.MAX_VALUES))}),
    ],
)
def test_recursion_that_goes_deeper_is_sound(schema: dict[str, Any]) -> None:
    assert complexity_problem(schema) is None


def test_lengths_of_a_wrong_type_are_left_to_the_compiler() -> None:
    assert complexity_problem(holding({**TEXT, "minLength": [], "maxLength": 5})) is None


def closed(properties: dict[str, Any], required: list[str] | None = None, **more: Any) -> dict[str, Any]:
    """Return the schema of an object with the properties, all of them required by default."""
    required_names = list(properties) if required is None else required
    return {"type": "object", "properties": properties, "required": required_names, "additionalProperties": False, **more}


def many(count: int, one: Any = TEXT) -> dict[str, Any]:
    return {f"p{n}": one for n in range(count)}


# What makes a compiler slow: a schema of each size, the limit, and what is said beyond it.
SIZES: dict[str, tuple[Callable[[int], dict[str, Any]], int, str]] = {
    "properties": (lambda n: closed(many(n)), limits.MAX_PROPERTIES, "properties"),
    "values": (lambda n: holding({"enum": list(range(n))}), limits.MAX_VALUES, "enum values"),
    "letters of values": (
        lambda n: closed({"a": {"enum": ["x" * (n - 101), "y" * 100]}}),
        limits.MAX_LETTERS,
        "characters",
    ),
    "letters of names": (lambda n: closed({"x" * n: TEXT}), limits.MAX_LETTERS, "characters"),
    "letters of a constant": (
        lambda n: closed({"a": {"const": {"k": "x" * (n - 10)}}}),
        limits.MAX_LETTERS,
        "characters",
    ),
    "optional in all": (
        lambda n: closed({f"o{j}": closed(many(n // 10 + (j < n % 10)), []) for j in range(10)}),
        limits.MAX_OPTIONAL,
        "properties that are not required",
    ),
    "optional and counted": (lambda n: closed(many(n), [], minProperties=5), limits.MAX_COUNTED, "'minProperties'"),
    "lengths": (
        lambda n: closed({f"p{i}": {"type": "string", "maxLength": 100 + i} for i in range(n)}),
        limits.MAX_LENGTHS,
        "'maxLength'",
    ),
    "formats": (lambda n: closed(many(n, {"type": "string", "format": "ipv6"})), limits.MAX_FORMATS, "'format'"),
    "letters of patterns": (
        lambda n: closed({"a": {"type": "string", "pattern": "x" * n}}),
        limits.MAX_PATTERN_LETTERS,
        "patterns",
    ),
    "one repeat": (
        lambda n: closed({"a": {"type": "string", "pattern": f"^a{{{n}}}$"}}),
        limits.MAX_REPEAT,
        "repeats of one",
    ),
    "all repeats": (
        lambda n: closed({f"p{i}": {"type": "string", "pattern": f"^a{{{n // 8}}}{'x' * i}$"} for i in range(8)}),
        limits.MAX_REPEATS,
        "repeats in all",
    ),
    "objects": (lambda n: {"type": "array", "prefixItems": [TEXT] * (n - 1)}, limits.MAX_OBJECTS, "JSON objects"),
}


@pytest.mark.parametrize("name", SIZES)
def test_schema_over_a_size_limit_is_refused(name: str) -> None:
    make, limit, what = SIZES[name]
    assert complexity_problem(make(limit)) is None
    problem = complexity_problem(make(limit + 10)) or ""
    assert what in problem
    assert f"at most {limit} are allowed" in problem


def test_a_long_chain_of_references_is_sound() -> None:
    chain = {f"d{n}": {"$ref": f"#/$defs/d{n + 1}"} for n in range(5_000)}
    assert complexity_problem(holding({"$ref": "#/$defs/d0"}, **chain)) is None


# xgrammar 0.2.8 itself refuses a repeat above 128.
@pytest.mark.parametrize("name", sorted(SIZES.keys() - {"one repeat", "all repeats"}))
@pytest.mark.slow
def test_schema_at_a_size_limit_compiles_in_time(name: str) -> None:
    pytest.importorskip("xgrammar")
    make, limit, _ = SIZES[name]
    tag = {"type": "structural_tag", "format": {"type": "json_schema", "json_schema": make(limit)}}
    assert asyncio.run(compiler.shared.run("p", CompileJob("structural_tag", json.dumps(tag))))


class SoundTest(ApiCase):
    """Where schemas are sent."""

    async def test_the_path_of_the_schema_is_named(self) -> None:
        loop = holding({"$ref": "#/properties/a"})
        update = {"type": "configuration_update", "text": {"format": {"type": "json_schema", "name": "n", "schema": loop}}}
        tool = {"type": "function", "name": "f", "parameters": loop}
        async with self.serving() as client:
            for body, code, param in (
                (
                    {"text": {"format": {"type": "json_schema", "name": "n", "schema": loop}}},
                    "json_schema",
                    "text.format.schema",
                ),
                ({"tools": [tool]}, "function_parameters", "tools[0].parameters"),
                ({"input": [update]}, "json_schema", "input[0].text.format.schema"),
            ):
                with self.subTest(param=param):
                    self.refused(await self.post(client, **body), 400, f"invalid_{code}", param, "leads back to itself")
