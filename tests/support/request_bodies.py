"""Hypothesis strategies for create requests: all features of the demo models, and inputs that the models do not know."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

Body = dict[str, Any]
# Ends the answer of a demo model that does not find its end.
MAX_OUTPUT_TOKENS = 256
NAMES = st.sampled_from(["Ada", "Grace", "Linus", "Zoltan", "Ngozi", "Mei", "Søren", "Óscar"])
CITIES = st.sampled_from(["Paris", "Tokyo", "Lagos", "Lima", "Oslo", "Reykjavík", "New York"])
THINGS = st.sampled_from(["a dragon", "a lighthouse", "a robot", "two mice", "the sea"])
ODD_TEXTS = st.sampled_from(["", " ", "🦕🦖", "\u0000\u2028", "<think>", "</tool_call>", "<|end|>", "日本語で"])
PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 12}, "age": {"type": "integer", "minimum": 0, "maximum": 130}},
    "required": ["name", "age"],
    "additionalProperties": False,
}


def function(name: str, description: str, **properties: Any) -> Body:
    """Build a function tool whose parameters are all required."""
    schema = {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
    return {"type": "function", "name": name, "description": description, "parameters": schema}


STRING = {"type": "string"}
WEATHER = function("get_weather", "Get the weather in a city", city=STRING)
ADD = function("add", "Add two numbers", a={"type": "integer"}, b={"type": "integer"})
MAIL = function("send_email", "Send an email", to=STRING, subject=STRING)
UNKNOWN = function("frobnicate_widget", "Frobnicate a widget", widget=STRING, level={"type": "integer"})


def greeting(name: str = "Ada", question: str = "How are you?") -> Body:
    """Build a request with a text as input."""
    return {"input": f"Hi, my name is {name}. {question}"}


def dialogue(name: str = "Ada") -> Body:
    """Build a request with an earlier answer in the input."""
    turns = [("user", f"My name is {name}."), ("assistant", f"Nice to meet you, {name}!"), ("user", "What is my name?")]
    return {"input": [{"role": role, "content": text} for role, text in turns]}


def content_parts(city: str = "Paris") -> Body:
    """Build a request with a developer message and two content parts."""
    parts = [{"type": "input_text", "text": "Hello."}, {"type": "input_text", "text": f"I live in {city}."}]
    return {"input": [{"type": "message", "role": "developer", "content": "Be brief."}, {"role": "user", "content": parts}]}


def story(thing: str = "a dragon", limit: int = 40) -> Body:
    """Build a request whose answer often reaches the token limit."""
    return {"input": f"Tell me a long story about {thing}.", "max_output_tokens": limit}


def addition(a: int = 17, b: int = 25, effort: str = "low") -> Body:
    """Build a request with a reasoning effort."""
    return {"input": f"What is {a} + {b}?", "reasoning": {"effort": effort}}


def tool_call(city: str = "Paris") -> Body:
    """Build a request that a call of a function answers."""
    return {"input": f"What is the weather in {city}?", "tools": [WEATHER], "instructions": "You are a helper."}


def parallel_calls(cities: list[str]) -> Body:
    """Build a request that two parallel calls answer."""
    text = f"What is the weather in {' and in '.join(cities)}?"
    return {"input": text, "tools": [WEATHER, ADD], "max_output_tokens": 300}


def tool_result(city: str = "Paris", number: int = 1) -> Body:
    """Build a request with reasoning, a call and the output of the call."""
    call = f"call_{number}"
    return {
        "input": [
            {"role": "user", "content": f"Weather in {city}?"},
            {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "I need the tool."}]},
            {"type": "function_call", "call_id": call, "name": "get_weather", "arguments": f'{{"city": "{city}"}}'},
            {"type": "function_call_output", "call_id": call, "output": '{"temperature": 21, "sky": "sunny"}'},
        ],
        "tools": [WEATHER],
    }


def unsuitable_tools(name: str = "Ada") -> Body:
    """Build a request whose tools do not help."""
    return {"input": f"Hello, I am {name}.", "tools": [ADD, MAIL]}


def unknown_tool(level: int = 1) -> Body:
    """Build a request with a tool that the demo models were not trained on."""
    return {"input": f"Frobnicate the widget blue at level {level}.", "tools": [UNKNOWN], "max_output_tokens": 200}


def forced_call(choice: Any = "required") -> Body:
    """Build a request whose `tool_choice` forces a call."""
    return {"input": "Add 2 and 3.", "tools": [WEATHER, ADD], "tool_choice": choice, "max_output_tokens": 250}


def forbidden_call(city: str = "Paris") -> Body:
    """Build a request whose `tool_choice` forbids calls."""
    return {"input": f"Weather in {city}?", "tools": [WEATHER], "tool_choice": "none", "max_output_tokens": 200}


def json_output(name: str = "Ada") -> Body:
    """Build a request with a strict JSON schema."""
    text = {"format": {"type": "json_schema", "name": "person", "schema": PERSON, "strict": True}}
    return {"input": f"{name} is a person. Answer as JSON.", "text": text, "max_output_tokens": 400}


def no_reasoning(city: str = "Paris") -> Body:
    """Build a request without reasoning."""
    return {"input": f"Good morning from {city}!", "reasoning": {"effort": "none"}}


def odd_text(text: str = "") -> Body:
    """Build a request with an unusual input."""
    return {"input": text, "max_output_tokens": 60}


def high_temperature(limit: int = 16) -> Body:
    """Build a request whose answer is nearly random text."""
    return {"input": "Say anything at all.", "temperature": 1.5, "top_p": 0.95, "max_output_tokens": limit}


def with_defaults(body: Body, stream: bool = True) -> Body:
    """Complete a body with a token limit and `stream`."""
    return {"max_output_tokens": MAX_OUTPUT_TOKENS, **body, "stream": stream}


CHOICES = st.sampled_from(["required", {"type": "function", "name": "add"}])
SHAPES = st.one_of(
    st.builds(greeting, NAMES, st.sampled_from(["How are you?", "Who are you?", ""])),
    st.builds(dialogue, NAMES),
    st.builds(content_parts, CITIES),
    st.builds(story, THINGS, st.sampled_from([16, 40, 120, 400])),
    st.builds(addition, st.integers(1, 60), st.integers(1, 39), st.sampled_from(["low", "high"])),
    st.builds(tool_call, CITIES),
    st.builds(parallel_calls, st.lists(CITIES, min_size=2, max_size=2, unique=True)),
    st.builds(tool_result, CITIES, st.integers(0, 10**9)),
    st.builds(unsuitable_tools, NAMES),
    st.builds(unknown_tool, st.integers(1, 9)),
    st.builds(forced_call, CHOICES),
    st.builds(forbidden_call, CITIES),
    st.builds(json_output, NAMES),
    st.builds(no_reasoning, CITIES),
    st.builds(odd_text, ODD_TEXTS),
    st.builds(high_temperature, st.integers(16, 80)),
)
# Create bodies without a model; two of three have `stream`.
BODIES = st.builds(with_defaults, SHAPES, st.sampled_from([True, True, False]))
# Each shape once, so that every run has all of them.
EVERY_SHAPE = [
    with_defaults(body, stream=index % 3 != 0)
    for index, body in enumerate(
        [
            greeting(),
            dialogue(),
            content_parts(),
            story(),
            addition(),
            tool_call(),
            parallel_calls(["Paris", "Oslo"]),
            tool_result(),
            unsuitable_tools(),
            unknown_tool(),
            forced_call(),
            forbidden_call(),
            json_output(),
            no_reasoning(),
            odd_text(),
            high_temperature(),
        ]
    )
]
