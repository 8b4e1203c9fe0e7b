"""Tools without `strict` whose calls follow their schema, up to a size in all."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from responses_app.dialects.constraints.bounds import bounded_tag
from responses_app.dialects.constraints.schema_cost import MAX_COST, cost, with_followed_schemas
from responses_app.dialects.constraints.structural_tag import arguments
from responses_app.dialects.schema_limits import SchemaLimits
from responses_app.dialects.toolset import FOLLOWED
from tests.support.dialects.parser_driver import chat, harmony, turn

ANY_OBJECT = {"type": "object"}
# Most characters of the grammars of all tools: compilation takes about half a second, and four times that for twice as many.
MAX_GRAMMAR = 400_000


def _tools(part: Callable[[int], Any], properties: int = 5, tools: int = 100) -> list[dict[str, Any]]:
    return [
        {
            "type": "function",
            "name": f"tool{at}",
            "parameters": {
                "type": "object",
                "properties": {f"p{at}_{n}": part(at * properties + n) for n in range(properties)},
            },
        }
        for at in range(tools)
    ]


def _text(_: int) -> dict[str, Any]:
    return {"type": "string", "description": "A text. " * 20, "minLength": 1}


def test_cost_counts_properties_values_and_free_values() -> None:
    assert cost(ANY_OBJECT) == 0
    assert cost(_tools(_text, 10, 1)[0]["parameters"]) < 15
    assert cost({"type": "object", "properties": {"a": {}}}) > 90
    assert cost({"type": "object", "properties": {"a": {"enum": ["x" * 3200]}}}) > 100


@pytest.mark.parametrize("kind", [5, True, 1.5, {"a": 1}])
def test_cost_of_a_strict_schema_with_a_wrong_type_is_counted(kind: Any) -> None:
    """The compiler refuses such a schema after its cost is known."""
    assert cost({"type": "object", "properties": {"a": {"type": kind}}}) == 2


def test_tools_of_a_usual_agent_are_followed() -> None:
    chosen = with_followed_schemas([*_tools(_text, 10, 40), *_tools(lambda _: {}, 1, 4)])
    assert ANY_OBJECT not in [tool[FOLLOWED] for tool in chosen]


def test_smallest_schemas_are_followed_first() -> None:
    large, small = _tools(_text, MAX_COST // 2, 2), _tools(_text, 5, 3)
    chosen = with_followed_schemas([*large, *small])
    assert [tool[FOLLOWED] == ANY_OBJECT for tool in chosen] == [False, True, False, False, False]
    assert [arguments(tool)["json_schema"] == ANY_OBJECT for tool in chosen] == [False, True, False, False, False]


def test_strict_schemas_count_and_are_always_followed() -> None:
    strict = [{**tool, "strict": True} for tool in _tools(_text, MAX_COST, 1)]
    chosen = with_followed_schemas([*_tools(_text, 5, 1), *strict])
    assert chosen[0][FOLLOWED] == ANY_OBJECT
    assert chosen[1] is strict[0]


@pytest.mark.parametrize("tool_choice", ["auto", "required"])
def test_dialects_limit_the_schemas_of_all_tools(tool_choice: str) -> None:
    tools = tuple(_tools(_text, 50, 128))
    for dialect in (harmony(), chat()):
        constraint = dialect.constrain(turn(tools=tools, tool_choice=tool_choice))
        text = json.dumps(constraint.value if constraint else None)
        assert text.count(json.dumps(ANY_OBJECT)) > 100 or text == "null"
        assert len(text) < 1_000_000
    limited = chat().constrain(
        turn(tools=tools, tool_choice=tool_choice, max_reasoning_length=10, schema_limits=SchemaLimits(20, 5))
    )
    assert limited is not None
    assert json.dumps(limited.value).count(json.dumps(ANY_OBJECT)) > 100


@pytest.mark.engine
@pytest.mark.parametrize(
    "part",
    [
        _text,
        lambda _: {},
        lambda _: {"type": "array"},
        lambda _: {"type": "object", "additionalProperties": True},
        lambda n: {"type": "object", "properties": {f"a{n}": {"type": "integer"}}, "required": [f"a{n}"]},
        lambda n: {"type": "integer", "minimum": n - 2**53 + 12_345, "maximum": 2**53 - 98_765 - n},
        lambda n: {"type": "number", "minimum": n + 0.123_456, "maximum": n + 98_765.432_1},
        lambda n: {"enum": [f"{k * 7919 % 997}-{n}-name" for k in range(20)]},
        lambda n: {"const": "c" * 500 + str(n)},
        lambda _: {"type": "string", "format": "ipv6"},
        lambda _: {"type": "string", "format": "duration"},
        lambda _: {"type": "string", "format": "uri"},
        lambda _: {"anyOf": [{"type": "string"}, {"type": "object"}, {"type": "null"}]},
    ],
)
def test_grammars_of_many_tools_are_small(part: Callable[[int], Any]) -> None:
    import xgrammar

    def ebnf(json_format: dict[str, Any]) -> str:
        text = json.dumps(json_format["json_schema"])
        return str(xgrammar.Grammar.from_json_schema(text, any_whitespace=False, separators=(", ", ": "), strict_mode=True))

    chosen = with_followed_schemas(_tools(part))
    grammars = {bounded_tag(arguments(tool), ebnf)["grammar"] for tool in chosen}
    assert sum(map(len, grammars)) < MAX_GRAMMAR
