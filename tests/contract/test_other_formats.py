"""Chat Completions and Messages with the openai and anthropic packages, unmodified, against a server as a user starts it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from anthropic import Anthropic, AuthenticationError, BadRequestError
from openai import OpenAI
from openai.types.chat import ChatCompletionFunctionToolParam
from pydantic import BaseModel

from tests.support.contract_server import Address
from tests.support.request_bodies import WEATHER

pytestmark = pytest.mark.engine
MODELS = ["demo-chat", "demo-harmony"]
QUESTION = "What is the weather in Paris?"
SCHEMA: Any = WEATHER["parameters"]
FUNCTION: ChatCompletionFunctionToolParam = {
    "type": "function",
    "function": {"name": "get_weather", "description": "The weather", "parameters": SCHEMA},
}
TOOL: Any = {"name": "get_weather", "description": "The weather", "input_schema": SCHEMA}
# The package has no temperature any more.
GREEDY: Any = {"extra_body": {"temperature": 0}}
SHOWN: Any = {"type": "enabled", "budget_tokens": 1024}


class Town(BaseModel):
    """Schema of an answer."""

    name: str


@pytest.fixture
def openai_client(server: Address) -> Iterator[OpenAI]:
    with OpenAI(base_url=server.base, api_key=server.key, max_retries=0) as made:
        yield made


@pytest.fixture
def anthropic_client(server: Address) -> Iterator[Any]:
    with Anthropic(base_url=server.server.url, api_key=server.key, max_retries=0) as made:
        yield made


@pytest.mark.parametrize("model", MODELS)
def test_the_three_formats_give_the_same_text(openai_client: OpenAI, anthropic_client: Any, model: str) -> None:
    for question in ("Hello!", "What is 17 + 25?", "Tell me a short story."):
        response = openai_client.responses.create(model=model, input=question, temperature=0, max_output_tokens=120)
        messages: Any = [{"role": "user", "content": question}]
        chat = openai_client.chat.completions.create(model=model, messages=messages, temperature=0, max_tokens=120)
        message = anthropic_client.messages.create(model=model, messages=messages, max_tokens=120, **GREEDY)
        assert chat.choices[0].message.content == response.output_text
        assert "".join(block.text for block in message.content) == response.output_text
        assert chat.usage is not None
        assert response.usage is not None
        tokens = response.usage.input_tokens, response.usage.output_tokens
        assert (chat.usage.prompt_tokens, chat.usage.completion_tokens) == tokens
        counted = message.usage.input_tokens + message.usage.cache_read_input_tokens
        assert (counted, message.usage.output_tokens) == tokens


@pytest.mark.parametrize("model", MODELS)
def test_the_stream_of_a_chat_is_its_completion(openai_client: OpenAI, model: str) -> None:
    messages: Any = [{"role": "user", "content": QUESTION}]
    with openai_client.chat.completions.stream(
        model=model, messages=messages, tools=[FUNCTION], temperature=0, stream_options={"include_usage": True}
    ) as stream:
        for _ in stream:
            pass
        streamed = stream.get_final_completion()
    made = openai_client.chat.completions.create(model=model, messages=messages, tools=[FUNCTION], temperature=0)
    assert streamed.choices[0].finish_reason == made.choices[0].finish_reason == "tool_calls"
    calls: list[Any] = [choice.message.tool_calls for choice in (streamed.choices[0], made.choices[0])]
    assert [[json.loads(call.function.arguments) for call in one] for one in calls] == [[{"city": "Paris"}]] * 2
    assert streamed.usage is not None
    assert made.usage is not None
    assert streamed.usage.total_tokens == made.usage.total_tokens


@pytest.mark.parametrize("model", MODELS)
def test_an_answer_follows_a_schema(openai_client: OpenAI, model: str) -> None:
    messages: Any = [{"role": "user", "content": "Name a town."}]
    parsed = openai_client.chat.completions.parse(model=model, messages=messages, response_format=Town, max_tokens=400)
    assert isinstance(parsed.choices[0].message.parsed, Town)


@pytest.mark.parametrize("model", MODELS)
def test_a_tool_loop_of_messages_goes_round(anthropic_client: Any, model: str) -> None:
    messages: list[Any] = [{"role": "user", "content": QUESTION}]
    options: dict[str, Any] = {"model": model, "tools": [TOOL], "thinking": SHOWN, "max_tokens": 2000, **GREEDY}
    assert anthropic_client.messages.count_tokens(model=model, tools=[TOOL], messages=messages).input_tokens > 0
    with anthropic_client.messages.stream(messages=messages, **options) as stream:
        first = stream.get_final_message()
    assert first.stop_reason == "tool_use"
    assert first.content[0].type == "thinking"
    calls = [block for block in first.content if block.type == "tool_use"]
    assert {(call.name, *call.input) for call in calls} == {("get_weather", "city")}
    results = [{"type": "tool_result", "tool_use_id": call.id, "content": "rainy, 12 degrees"} for call in calls]
    messages += [{"role": "assistant", "content": first.content}, {"role": "user", "content": results}]
    second = anthropic_client.messages.create(messages=messages, **options)
    assert second.stop_reason == "end_turn"
    assert second.content[-1].text


def test_errors_are_those_of_the_packages(openai_client: OpenAI, anthropic_client: Any) -> None:
    messages = [{"role": "user", "content": "Hi"}]
    with pytest.raises(BadRequestError, match="does not exist"):
        anthropic_client.messages.create(model="none", messages=messages, max_tokens=10)
    with pytest.raises(AuthenticationError):
        anthropic_client.with_options(api_key="sk-wrong").messages.create(model="none", messages=messages, max_tokens=10)
    assert {model.id for model in anthropic_client.models.list()} == set(MODELS)
