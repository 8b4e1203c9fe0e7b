"""Schemas of the clients' examples: the demo models answer each with JSON that ends."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest
from openai import AsyncOpenAI
from openai.types.responses import Response

from tests.support.contract_server import Address

pytestmark = pytest.mark.engine
STRING, INTEGER, NUMBER, BOOLEAN = ({"type": kind} for kind in ("string", "integer", "number", "boolean"))
# The limit of the demo models is 512.
MAX_TOKENS = 511


def record(**properties: Any) -> dict[str, Any]:
    """Build the schema of an object whose properties are all required."""
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def array(items: dict[str, Any]) -> dict[str, Any]:
    """Build the schema of an array."""
    return {"type": "array", "items": items}


EXAMPLES: list[tuple[str, dict[str, Any]]] = [
    ("Who?", record(name=STRING, age=INTEGER)),
    ("Ada is 36 years old.", record(name=STRING, age=INTEGER)),
    ("Alice and Bob are going to a science fair on Friday.", record(name=STRING, date=STRING, participants=array(STRING))),
    ("how can I solve 8x + 7 = -23", record(steps=array(record(explanation=STRING, output=STRING)), final_answer=STRING)),
    ("What is the weather in Paris?", record(city=STRING, temperature=NUMBER, condition=STRING)),
    (
        "What is the weather in Oslo?",
        record(location=STRING, temperature=NUMBER, unit={"type": "string", "enum": ["celsius", "fahrenheit"]}),
    ),
    (
        "Tell me a joke about cats.",
        record(setup=STRING, punchline=STRING, rating={"anyOf": [INTEGER, {"type": "null"}]}),
    ),
    ("Where were the olympics held in 2012?", record(city=STRING, country=STRING)),
    (
        "Generate a lasagna recipe.",
        record(recipe=record(name=STRING, ingredients=array(record(name=STRING, amount=STRING)), steps=array(STRING))),
    ),
    (
        "Extract contact info from: John Doe, john@example.com, (555) 123-4567",
        record(name=STRING, email=STRING, phone=STRING),
    ),
    ("What is the meaning of life?", record(is_homework=BOOLEAN, reasoning=STRING)),
    (
        "I love this book!",
        record(sentiment={"type": "string", "enum": ["positive", "negative", "neutral"]}, score=NUMBER),
    ),
]


ANY: Any = {"type": "json_object"}
ANY_QUESTION = "A person as JSON."
# For its large vocabulary a schema costs demo-harmony many times the CPU of the other model: these have every kind of value.
HARMONY_EXAMPLES = [EXAMPLES[index] for index in (3, 5, 6, 8, 10)]
CASES = [
    *(("demo-chat", question, schema) for question, schema in EXAMPLES),
    *(("demo-harmony", question, schema) for question, schema in HARMONY_EXAMPLES),
]
Answers = dict[tuple[str, str], Response]


@pytest.fixture(scope="module")
def answers(server: Address) -> Answers:
    """Ask the models for all examples and for any object side by side: an engine answers many for little more than one."""
    forms: list[tuple[str, str, Any]] = [
        (model, question, {"type": "json_schema", "name": "answer", "schema": schema, "strict": True})
        for model, question, schema in CASES
    ]
    return asyncio.run(_ask(server, [*forms, *((model, ANY_QUESTION, ANY) for model in ("demo-chat", "demo-harmony"))]))


async def _ask(server: Address, forms: Sequence[tuple[str, str, Any]]) -> Answers:
    async with AsyncOpenAI(base_url=server.base, api_key=server.key, max_retries=0) as client:
        create = client.responses.create
        made = await asyncio.gather(
            *(create(model=model, input=question, text={"format": form}, temperature=0) for model, question, form in forms)
        )
    return {(model, question): one for (model, question, _), one in zip(forms, made, strict=True)}


@pytest.mark.parametrize(("model", "question", "schema"), CASES, ids=[f"{model} {question}" for model, question, _ in CASES])
def test_answer_to_a_schema_ends(answers: Answers, model: str, question: str, schema: dict[str, Any]) -> None:
    made = answers[model, question]
    assert made.status == "completed"
    assert made.usage is not None
    assert made.usage.output_tokens <= MAX_TOKENS
    assert list(json.loads(made.output_text)) == schema["required"]


@pytest.mark.parametrize("model", ["demo-chat", "demo-harmony"])
def test_answer_as_any_json_object_ends(answers: Answers, model: str) -> None:
    made = answers[model, ANY_QUESTION]
    assert made.status == "completed"
    assert isinstance(json.loads(made.output_text), dict)
