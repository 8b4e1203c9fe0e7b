"""Two hundred varied requests: every way of asking that the demo models know, and some that they do not."""

from __future__ import annotations

import random
from typing import Any

NAMES = ("Ada", "Grace", "Linus", "Zoltan", "Ngozi", "Mei", "Søren", "Óscar")
CITIES = ("Paris", "Tokyo", "Lagos", "Lima", "Oslo", "Reykjavík", "New York")
THINGS = ("a dragon", "a lighthouse", "a robot", "two mice", "the sea")
PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 12}, "age": {"type": "integer", "minimum": 0, "maximum": 130}},
    "required": ["name", "age"],
    "additionalProperties": False,
}


def function(name: str, description: str, **properties: Any) -> dict[str, Any]:
    """A function tool whose parameters are all required."""
    schema = {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
    return {"type": "function", "name": name, "description": description, "parameters": schema}


STRING = {"type": "string"}
WEATHER = function("get_weather", "Get the weather in a city", city=STRING)
ADD = function("add", "Add two numbers", a={"type": "integer"}, b={"type": "integer"})
MAIL = function("send_email", "Send an email", to=STRING, subject=STRING)
ODD = function("frobnicate_widget", "Frobnicate a widget", widget=STRING, level={"type": "integer"})


def varied(count: int, seed: int = 7) -> list[dict[str, Any]]:
    """`count` create bodies without a model, the same for the same seed."""
    chance = random.Random(seed)
    # A demo model that does not find its end goes on to the limit.
    return [{"max_output_tokens": 256, **chance.choice(KINDS)(chance)} for _ in range(count)]


def _greet(chance: random.Random) -> dict[str, Any]:
    return {"input": f"Hi, my name is {chance.choice(NAMES)}. {chance.choice(('How are you?', 'Who are you?', ''))}"}


def _dialogue(chance: random.Random) -> dict[str, Any]:
    name = chance.choice(NAMES)
    turns = [("user", f"My name is {name}."), ("assistant", f"Nice to meet you, {name}!"), ("user", "What is my name?")]
    return {"input": [{"role": role, "content": text} for role, text in turns]}


def _parts(chance: random.Random) -> dict[str, Any]:
    parts = [{"type": "input_text", "text": "Hello."}, {"type": "input_text", "text": f"I live in {chance.choice(CITIES)}."}]
    return {"input": [{"type": "message", "role": "developer", "content": "Be brief."}, {"role": "user", "content": parts}]}


def _story(chance: random.Random) -> dict[str, Any]:
    return {
        "input": f"Tell me a long story about {chance.choice(THINGS)}.",
        "max_output_tokens": chance.choice((16, 40, 120, 400)),
    }


def _sum(chance: random.Random) -> dict[str, Any]:
    return {
        "input": f"What is {chance.randint(1, 60)} + {chance.randint(1, 39)}?",
        "reasoning": {"effort": chance.choice(("low", "high"))},
    }


def _weather(chance: random.Random) -> dict[str, Any]:
    return {
        "input": f"What is the weather in {chance.choice(CITIES)}?",
        "tools": [WEATHER],
        "instructions": "You are a helper.",
    }


def _two_cities(chance: random.Random) -> dict[str, Any]:
    one, two = chance.sample(CITIES, 2)
    return {"input": f"What is the weather in {one} and in {two}?", "tools": [WEATHER, ADD], "max_output_tokens": 300}


def _result(chance: random.Random) -> dict[str, Any]:
    city, call = chance.choice(CITIES), f"call_{chance.randrange(10**9)}"
    return {
        "input": [
            {"role": "user", "content": f"Weather in {city}?"},
            {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "I need the tool."}]},
            {"type": "function_call", "call_id": call, "name": "get_weather", "arguments": f'{{"city": "{city}"}}'},
            {"type": "function_call_output", "call_id": call, "output": '{"temperature": 21, "sky": "sunny"}'},
        ],
        "tools": [WEATHER],
    }


def _none_fits(chance: random.Random) -> dict[str, Any]:
    return {"input": f"Hello, I am {chance.choice(NAMES)}.", "tools": [ADD, MAIL]}


def _unseen(chance: random.Random) -> dict[str, Any]:
    return {"input": f"Frobnicate the widget blue at level {chance.randint(1, 9)}.", "tools": [ODD], "max_output_tokens": 200}


def _required(chance: random.Random) -> dict[str, Any]:
    choice: Any = chance.choice(("required", {"type": "function", "name": "add"}))
    return {"input": "Add 2 and 3.", "tools": [WEATHER, ADD], "tool_choice": choice, "max_output_tokens": 250}


def _forbidden(chance: random.Random) -> dict[str, Any]:
    return {
        "input": f"Weather in {chance.choice(CITIES)}?",
        "tools": [WEATHER],
        "tool_choice": "none",
        "max_output_tokens": 200,
    }


def _json(chance: random.Random) -> dict[str, Any]:
    text = {"format": {"type": "json_schema", "name": "person", "schema": PERSON, "strict": True}}
    return {"input": f"{chance.choice(NAMES)} is a person. Answer as JSON.", "text": text, "max_output_tokens": 400}


def _thoughtless(chance: random.Random) -> dict[str, Any]:
    return {"input": f"Good morning from {chance.choice(CITIES)}!", "reasoning": {"effort": "none"}}


def _odd(chance: random.Random) -> dict[str, Any]:
    return {
        "input": chance.choice(("", " ", "🦕🦖", "\u0000\u2028", "<think>", "</tool_call>", "<|end|>", "日本語で")),
        "max_output_tokens": 60,
    }


def _hot(chance: random.Random) -> dict[str, Any]:
    return {"input": "Say anything at all.", "temperature": 1.5, "top_p": 0.95, "max_output_tokens": chance.randint(16, 80)}


KINDS = (
    _greet,
    _dialogue,
    _parts,
    _story,
    _sum,
    _weather,
    _two_cities,
    _result,
    _none_fits,
    _unseen,
    _required,
    _forbidden,
    _json,
    _thoughtless,
    _odd,
    _hot,
)
