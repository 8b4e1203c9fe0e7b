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


MODELS = ["demo-chat", "demo-harmony"]
ANY: Any = {"type": "json_object"}


@pytest.fixture(scope="module", params=MODELS)
def answers(server: Address, request: pytest.FixtureRequest) -> list[Response]:
    """Ask a model for all examples and for any object side by side: an engine answers many for little more than one."""
    schemas = [{"type": "json_schema", "name": "answer", "schema": schema, "strict": True} for _, schema in EXAMPLES]
    questions = [(question, text) for (question, _), text in zip(EXAMPLES, schemas, strict=True)]
    return asyncio.run(_ask(server, request.param, [*questions, ("A person as JSON.", ANY)]))


async def _ask(server: Address, model: str, questions: Sequence[tuple[str, Any]]) -> list[Response]:
    async with AsyncOpenAI(base_url=server.base, api_key=server.key, max_retries=0) as client:
        create = client.responses.create
        return await asyncio.gather(
            *(create(model=model, input=question, text={"format": form}, temperature=0) for question, form in questions)
        )


@pytest.mark.parametrize("index", range(len(EXAMPLES)), ids=[question for question, _ in EXAMPLES])
def test_answer_to_a_schema_ends(answers: list[Response], index: int) -> None:
    made = answers[index]
    assert made.status == "completed"
    assert made.usage is not None
    assert made.usage.output_tokens <= MAX_TOKENS
    assert list(json.loads(made.output_text)) == EXAMPLES[index][1]["required"]


def test_answer_as_any_json_object_ends(answers: list[Response]) -> None:
    made = answers[-1]
    assert made.status == "completed"
    assert isinstance(json.loads(made.output_text), dict)
