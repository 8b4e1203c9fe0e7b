"""The openai client, unmodified, against a server as a user starts it."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI, OpenAI

from tests.support.contract_server import Address
from tests.support.request_bodies import PERSON, WEATHER

pytestmark = pytest.mark.engine
MODELS = ["demo-chat", "demo-harmony"]


def test_a_second_turn_has_the_first_in_its_prompt(client: OpenAI) -> None:
    first = client.responses.create(model="demo-chat", input="Hi! My name is Ada.")
    second = client.responses.create(model="demo-chat", input="What is my name?", previous_response_id=first.id)
    assert second.previous_response_id == first.id
    assert first.usage is not None
    assert second.usage is not None
    assert second.usage.input_tokens > first.usage.input_tokens


@pytest.mark.parametrize("model", MODELS)
def test_reasoning_tokens_are_counted(client: OpenAI, model: str) -> None:
    response = client.responses.create(model=model, input="What is 17 + 25?")
    assert [item.type for item in response.output] == ["reasoning", "message"]
    assert response.usage is not None
    assert 0 < response.usage.output_tokens_details.reasoning_tokens < response.usage.output_tokens


def test_a_stream_ends_with_the_sum_of_its_deltas(client: OpenAI) -> None:
    with client.responses.stream(model="demo-chat", input="Hello!") as stream:
        deltas = [event.delta for event in stream if event.type == "response.output_text.delta"]
        final = stream.get_final_response()
    assert "".join(deltas) == final.output_text
    assert final.usage is not None
    assert final.usage.output_tokens >= len(deltas) >= 1


@pytest.mark.parametrize("model", MODELS)
def test_a_tool_loop_goes_round(client: OpenAI, model: str) -> None:
    tools: Any = [WEATHER]
    question = "What is the weather in Paris?"
    first = client.responses.create(model=model, input=question, tools=tools, tool_choice="required", max_output_tokens=400)
    calls = [item for item in first.output if item.type == "function_call"]
    assert {(call.name, *json.loads(call.arguments)) for call in calls} == {("get_weather", "city")}
    outputs: Any = [{"type": "function_call_output", "call_id": call.call_id, "output": "rainy, 12 degrees"} for call in calls]
    second = client.responses.create(
        model=model, input=outputs, tools=tools, previous_response_id=first.id, max_output_tokens=400
    )
    listed = [item.type for item in client.responses.input_items.list(second.id, order="asc")]
    assert listed == ["message", *(item.type for item in first.output), *("function_call_output" for _ in calls)]


def test_a_json_schema_binds_the_answer(client: OpenAI) -> None:
    text: Any = {"format": {"type": "json_schema", "name": "person", "schema": PERSON, "strict": True}}
    effort: Any = {"effort": "none"}
    response = client.responses.create(
        model="demo-chat", input="A person as JSON.", text=text, reasoning=effort, max_output_tokens=400
    )
    person = json.loads(response.output_text)
    assert list(person) == ["name", "age"]
    assert isinstance(person["age"], int)


NAMED = {"type": "function", "name": "get_weather"}


@pytest.mark.parametrize(("model", "choice"), [("demo-chat", "required"), ("demo-chat", NAMED), ("demo-harmony", NAMED)])
def test_a_forced_call_is_a_call_of_that_tool_and_none_is_none(client: OpenAI, model: str, choice: Any) -> None:
    tools: Any = [WEATHER]
    forced = client.responses.create(model=model, input="Hello!", tools=tools, tool_choice=choice, max_output_tokens=400)
    assert {item.name for item in forced.output if item.type == "function_call"} == {"get_weather"}
    free = client.responses.create(
        model=model, input="What is the weather in Paris?", tools=tools, tool_choice="none", max_output_tokens=400
    )
    assert not [item for item in free.output if item.type == "function_call"]


def test_the_prefix_cache_shows_in_the_usage(client: OpenAI) -> None:
    instructions = "You are kind and patient. " * 20
    for _ in range(2):
        response = client.responses.create(model="demo-chat", input="Hello!", instructions=instructions)
    assert response.usage is not None
    assert response.usage.input_tokens_details.cached_tokens > 0


def test_errors_are_the_exceptions_of_the_client(client: OpenAI, server: Address) -> None:
    with pytest.raises(openai.BadRequestError) as bad:
        client.responses.create(model="nope", input="x")
    assert (bad.value.code, bad.value.param) == ("model_not_found", "model")
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve("resp_nope")
    with pytest.raises(openai.AuthenticationError):
        OpenAI(base_url=server.base, api_key="sk-wrong", max_retries=0).models.list()
    assert {model.id for model in client.models.list()} == set(MODELS)


def test_input_items_page_and_a_deleted_response_is_gone(client: OpenAI) -> None:
    first = client.responses.create(model="demo-chat", input="Hi! My name is Ada.")
    second = client.responses.create(model="demo-chat", input="Thanks!", previous_response_id=first.id)
    listed = list(client.responses.input_items.list(second.id, limit=1, order="asc"))
    assert listed[0].type == "message"
    assert len(listed) == 1 + len(first.output) + 1
    client.responses.delete(second.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(second.id)


def test_a_client_that_leaves_stops_the_engine(server: Address) -> None:
    async def leave() -> tuple[str, float]:
        async with AsyncOpenAI(base_url=server.base, api_key=server.key) as client:
            extra = {"ignore_eos": True, "max_output_tokens": 30_000}
            stream = await client.responses.create(model="demo-chat", input="Tell me a story.", stream=True, extra_body=extra)
            uid = ""
            async for event in stream:
                if event.type == "response.created":
                    uid = event.response.id
                if event.type.endswith(".delta"):
                    break
            await stream.close()
            left = time.monotonic()
            ended = [event async for event in await client.responses.retrieve(uid, stream=True)][-1]
            assert ended.type == "response.failed"
            return ended.response.status or "", time.monotonic() - left

    status, seconds = asyncio.run(leave())
    assert status == "cancelled"
    # The output limit alone would take minutes.
    assert seconds < 60


def test_a_stream_can_be_resumed_through_the_client(client: OpenAI) -> None:
    made = client.responses.create(model="demo-chat", input="Hello!")
    events = list(client.responses.retrieve(made.id, stream=True))
    later = list(client.responses.retrieve(made.id, stream=True, starting_after=3))
    assert [event.sequence_number for event in later] == list(range(4, len(events)))
    assert [event.to_dict() for event in later] == [event.to_dict() for event in events[4:]]
