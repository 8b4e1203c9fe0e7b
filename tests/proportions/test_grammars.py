"""Grammars over a large vocabulary: the output follows them. Seconds and memory of a grammar are printed at the end of the run."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, create_model

from tests.support.large_model_server import LargeModelServer, deltas

ENGINE = ("VLLM::", "engines.socket.server")
# Far above what one schema needs.
MAX_GROWTH_MIB = 1024
RecordProperty = Callable[[str, object], None]
WRITE = {"type": "custom", "name": "write"}
Short = Annotated[str, Field(max_length=12)]
Code = Annotated[str, Field(pattern="^[A-Z]{3}-[0-9]{4}$")]
Cyrillic = Annotated[str, Field(pattern="^[а-я]{5,9}$")]


class Strict(BaseModel):
    """Object without other properties, as strict schemas demand."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Person(Strict):
    """Values of the simple types."""

    name: Short
    age: Annotated[int, Field(ge=0, le=130)]
    alive: bool


class LongString(Strict):
    """A string with limits."""

    text: Annotated[str, Field(min_length=40, max_length=60)]


class Patterns(Strict):
    """Strings with regular expressions."""

    code: Code
    word: Cyrillic


class Cell(Strict):
    """Element of an array."""

    id: Short


class Rows(Strict):
    """Arrays in an array."""

    rows: Annotated[list[Annotated[list[Cell], Field(max_length=2)]], Field(min_length=2, max_length=3)]


class Alternatives(Strict):
    """A value of several types, and values of an enumeration."""

    value: Cell | None
    sign: Literal["日本", "🦕", "é"]


class Line(Strict):
    """Two references to one definition."""

    begin: Person
    end: Person


MODELS = (
    *(Person, LongString, Patterns, Rows, Alternatives, Line),
    create_model("ManyProperties", __base__=Strict, **dict[str, Any]({f"property_{number}": bool for number in range(16)})),
)


@pytest.mark.parametrize("model", MODELS)
def test_answers_are_valid_for_their_schema(
    large: LargeModelServer, model: type[Strict], record_property: RecordProperty
) -> None:
    name, schema = model.__name__, model.model_json_schema()
    form = {"type": "json_schema", "name": "example", "strict": True, "schema": schema}
    memory_mib, began = large.memory_mib(*ENGINE), time.monotonic()
    first_delta_s: list[float] = []

    def time_delta(event: dict[str, Any]) -> None:
        if event["type"] == "response.output_text.delta":
            first_delta_s.append(time.monotonic() - began)

    for _ in range(2):
        events = large.stream(time_delta, input="An example.", temperature=1, text={"format": form}, max_output_tokens=2000)
        assert events[-1]["response"]["status"] == "completed"
        model.model_validate_json("".join(deltas(events)))
    grown_mib = large.memory_mib(*ENGINE) - memory_mib
    record_property("measured", f"schema {name}: first token after {first_delta_s[0]:.2f} s, engine {grown_mib:+.0f} MiB")
    assert grown_mib < MAX_GROWTH_MIB


def test_forced_call_has_valid_arguments(large: LargeModelServer) -> None:
    call = {
        "type": "function",
        "name": "look_up",
        "description": "Look a word up.",
        "parameters": Person.model_json_schema(),
        "strict": True,
    }
    for temperature in (0, 1):
        answer = large.create(input="Hi", tools=[call], tool_choice="required", temperature=temperature, max_output_tokens=1000)
        calls = [item for item in answer["output"] if item["type"] == "function_call"]
        assert [item["name"] for item in calls] == ["look_up"] * len(calls)
        assert calls
        for item in calls:
            Person.model_validate_json(item["arguments"])


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
