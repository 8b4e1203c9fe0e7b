"""Grammars over a large vocabulary: the output follows them. Seconds and memory of a compilation are printed at the end of the run."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from typing import Any

import jsonschema
import pytest

from tests.support.large_model_server import LargeModelServer, deltas

ENGINE = ("VLLM::", "engines.socket.server")
# Far above what one schema needs.
MAX_GROWTH_MIB = 1024
RecordProperty = Callable[[str, object], None]
WRITE = {"type": "custom", "name": "write"}
BOOLEAN = {"type": "boolean"}
SHORT = {"type": "string", "maxLength": 12}


def record(**properties: Any) -> dict[str, Any]:
    """Return the schema of an object whose properties are all required."""
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


SCHEMAS: dict[str, dict[str, Any]] = {
    "object": record(name=SHORT, age={"type": "integer", "minimum": 0, "maximum": 130}, alive=BOOLEAN),
    "long string": record(text={"type": "string", "minLength": 40, "maxLength": 60}),
    "pattern": record(
        code={"type": "string", "pattern": "^[A-Z]{3}-[0-9]{4}$"}, word={"type": "string", "pattern": "^[а-я]{5,9}$"}
    ),
    "nested arrays": record(
        rows={
            "type": "array",
            "minItems": 2,
            "maxItems": 3,
            "items": {"type": "array", "maxItems": 2, "items": record(id=SHORT)},
        }
    ),
    "alternatives": record(
        value={"anyOf": [{"type": "null"}, record(kind={"const": "a"}, note=SHORT), {"enum": ["日本", "🦕", 7]}]}
    ),
    "definitions": {
        **record(first={"$ref": "#/$defs/point"}, second={"$ref": "#/$defs/point"}),
        "$defs": {"point": record(x={"type": "integer", "minimum": -9, "maximum": 9}, label=SHORT)},
    },
    "many properties": record(**{f"property_{number}": BOOLEAN for number in range(16)}),
}
WORD = record(word=SHORT, is_rare=BOOLEAN)


@pytest.mark.parametrize("name", SCHEMAS)
def test_answers_are_valid_for_their_schema(large: LargeModelServer, name: str, record_property: RecordProperty) -> None:
    schema = SCHEMAS[name]
    form = {"type": "json_schema", "name": "example", "strict": True, "schema": schema}
    memory_mib, began = large.memory_mib(*ENGINE), time.monotonic()
    first_delta_s: list[float] = []

    def time_delta(event: dict[str, Any]) -> None:
        if event["type"] == "response.output_text.delta":
            first_delta_s.append(time.monotonic() - began)

    for _ in range(2):
        events = large.stream(time_delta, input="An example.", temperature=1, text={"format": form}, max_output_tokens=2000)
        assert events[-1]["response"]["status"] == "completed"
        jsonschema.validate(json.loads("".join(deltas(events))), schema)
    grown_mib = large.memory_mib(*ENGINE) - memory_mib
    record_property("measured", f"schema '{name}': first token after {first_delta_s[0]:.2f} s, engine {grown_mib:+.0f} MiB")
    assert grown_mib < MAX_GROWTH_MIB


def test_forced_call_has_valid_arguments(large: LargeModelServer) -> None:
    call = {"type": "function", "name": "look_up", "description": "Look a word up.", "parameters": WORD, "strict": True}
    for temperature in (0, 1):
        answer = large.create(input="Hi", tools=[call], tool_choice="required", temperature=temperature, max_output_tokens=1000)
        calls = [item for item in answer["output"] if item["type"] == "function_call"]
        assert [item["name"] for item in calls] == ["look_up"] * len(calls)
        assert calls
        for item in calls:
            jsonschema.validate(json.loads(item["arguments"]), WORD)


@pytest.mark.parametrize(
    ("grammar", "pattern"),
    [
        ({"syntax": "regex", "definition": "[\u4e00-\u9fa5]{20,30}"}, "[\u4e00-\u9fa5]{20,30}"),
        ({"syntax": "lark", "definition": 'start: ITEM+\nITEM: "🦕" | "🦖né" | "語 "'}, "(🦕|🦖né|語 )+"),
    ],
    ids=["regex", "lark"],
)
def test_custom_tool_follows_its_grammar(large: LargeModelServer, grammar: dict[str, str], pattern: str) -> None:
    tool = {"type": "custom", "name": "write", "format": {"type": "grammar", **grammar}}
    answer = large.create(input="Hi", tools=[tool], tool_choice=WRITE, temperature=1, max_output_tokens=1000)
    (call,) = (item for item in answer["output"] if item["type"] == "custom_tool_call")
    assert re.fullmatch(pattern, call["input"])
