"""Schemas that no engine can follow, strict or not, are refused before one tries."""

from __future__ import annotations

from typing import Any

import pytest

from responses_app.api.sound import MOST, MOST_OPTIONAL, unsound
from tests.api.case import ApiCase

TEXT: dict[str, Any] = {"type": "string"}


def holding(one: Any, **defs: Any) -> dict[str, Any]:
    """An object with one property."""
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
    assert "leads back to itself" in (unsound(schema) or "")


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
        holding({"enum": list(range(MOST - 1))}),
    ],
)
def test_recursion_that_goes_deeper_is_sound(schema: dict[str, Any]) -> None:
    assert unsound(schema) is None


def test_there_is_a_limit_to_what_is_compiled() -> None:
    assert unsound(holding({"enum": list(range(MOST))})) == f"more than {MOST} properties and enum values."
    many = {f"p{n}": TEXT for n in range(MOST_OPTIONAL + 1)}
    assert unsound({"properties": many, "required": ["p0"]}) is None
    assert unsound({"properties": many}) == f"more than {MOST_OPTIONAL} properties of an object are not required."
    chain = {f"d{n}": {"$ref": f"#/$defs/d{n + 1}"} for n in range(MOST)}
    assert unsound(holding({"$ref": "#/$defs/d0"}, **chain)) is None


class SoundTest(ApiCase):
    """Where schemas are sent."""

    async def test_the_path_of_the_schema_is_named(self) -> None:
        loop = holding({"$ref": "#/properties/a"})
        update = {"type": "configuration_update", "text": {"format": {"type": "json_schema", "name": "n", "schema": loop}}}
        tool = {"type": "function", "name": "f", "parameters": loop}
        async with self.serving() as client:
            for body, code, param in (
                ({"text": {"format": {"type": "json_schema", "name": "n", "schema": loop}}}, "json_schema", "text.format.schema"),
                ({"tools": [tool]}, "function_parameters", "tools[0].parameters"),
                ({"input": [update]}, "json_schema", "input[0].text.format.schema"),
            ):
                with self.subTest(param=param):
                    self.refused(await self.post(client, **body), 400, f"invalid_{code}", param, "leads back to itself")
