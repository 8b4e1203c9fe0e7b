"""Chat Completions and Messages with the openai and anthropic packages, unmodified, against a server as a user starts it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import Phase, example, given, settings
from openai import AsyncOpenAI, OpenAI
from openai.types.chat import ChatCompletionFunctionToolParam
from pydantic import BaseModel

from tests.support import plain_http
from tests.support.api_formats.same_meaning import FORCED_CALL, FORMATS, GREETING, FormatAnswer, Meaning, meanings
from tests.support.contract_server import Address
from tests.support.hypothesis_profile import examples
from tests.support.request_bodies import WEATHER

pytestmark = pytest.mark.engine
MODELS = ["demo-chat", "demo-harmony"]
QUESTION = "What is the weather in Paris?"
SCHEMA: Any = WEATHER["parameters"]
FUNCTION: ChatCompletionFunctionToolParam = {
    "type": "function",
    "function": {"name": "get_weather", "description": WEATHER["description"], "parameters": SCHEMA},
}
TOOL: Any = {"name": "get_weather", "description": WEATHER["description"], "input_schema": SCHEMA}
# The package has no temperature any more.
GREEDY: Any = {"extra_body": {"temperature": 0}}
TOWN: Any = [{"role": "user", "content": "Name a town."}]
SHOWN: Any = {"type": "enabled", "budget_tokens": 1024}
MOST = 80
PHASES = (Phase.explicit, Phase.generate, Phase.shrink)


class Town(BaseModel):
    """Schema of an answer."""

    name: str


@pytest.fixture
def anthropic_client(server: Address) -> Iterator[Any]:
    # Here, as each process that collects this test would spend two seconds of CPU on the import.
    from anthropic import Anthropic

    with Anthropic(base_url=server.server.url, api_key=server.key, max_retries=0) as made:
        yield made


@pytest.mark.parametrize(
    ("model", "efforts", "images", "count"),
    [("demo-chat", ("none", "medium"), True, 200), ("demo-harmony", ("low", "high"), False, 100)],
)
def test_the_three_formats_give_the_same_texts_and_calls(
    server: Address, model: str, efforts: Sequence[str], images: bool, count: int
) -> None:
    answers: list[FormatAnswer] = []
    headers = {"Authorization": f"Bearer {server.key}", "anthropic-version": "2023-06-01"}
    with plain_http.client(base_url=server.base, headers=headers, timeout=120) as client:

        @settings(max_examples=examples(count, 0.05), phases=PHASES, derandomize=True, database=None)
        @given(meanings(efforts, images=images, spaced=True))
        @example(FORCED_CALL)
        @example(GREETING)
        def ask(meaning: Meaning) -> None:
            made = {}
            for path, (body_of, answer_of) in FORMATS.items():
                response = client.post(f"/{path}", json={"model": model, **body_of(meaning)})
                assert response.status_code == 200, (path, response.text)
                made[path] = answer_of(response.json())
            of_response = made.pop("responses")
            assert made == dict.fromkeys(made, of_response)
            answers.append(of_response)

        ask()
    assert any(answer.text for answer in answers)
    assert any(answer.calls for answer in answers)


def test_the_stream_of_a_chat_is_its_completion(client: OpenAI) -> None:
    messages: Any = [{"role": "user", "content": QUESTION}]
    with client.chat.completions.stream(
        model=MODELS[0], messages=messages, tools=[FUNCTION], temperature=0, stream_options={"include_usage": True}
    ) as stream:
        for _ in stream:
            pass
        streamed = stream.get_final_completion()
    made = client.chat.completions.create(model=MODELS[0], messages=messages, tools=[FUNCTION], temperature=0)
    assert streamed.choices[0].finish_reason == made.choices[0].finish_reason == "tool_calls"
    calls: list[Any] = [choice.message.tool_calls for choice in (streamed.choices[0], made.choices[0])]
    assert [[json.loads(call.function.arguments) for call in one] for one in calls] == [[{"city": "Paris"}]] * 2
    assert streamed.usage is not None
    assert made.usage is not None
    assert streamed.usage.total_tokens == made.usage.total_tokens


def test_an_answer_follows_a_schema(client: OpenAI) -> None:
    parsed = client.chat.completions.parse(model=MODELS[0], messages=TOWN, response_format=Town, max_tokens=400)
    assert isinstance(parsed.choices[0].message.parsed, Town)


def test_the_async_client_creates_streams_and_parses_chats(server: Address) -> None:
    messages: Any = [{"role": "user", "content": QUESTION}]
    options: dict[str, Any] = {"model": MODELS[0], "messages": messages, "tools": [FUNCTION], "temperature": 0}

    async def ask() -> tuple[Any, ...]:
        async with AsyncOpenAI(base_url=server.base, api_key=server.key, max_retries=0) as client:
            chats = client.chat.completions
            answers: tuple[Any, ...] = await asyncio.gather(
                chats.create(**options),
                _last_chat(client, options),
                _chunks(client, options),
                chats.parse(model=MODELS[0], messages=TOWN, response_format=Town, max_tokens=400),
            )
            return answers

    made, streamed, chunks, parsed = asyncio.run(ask())
    for choice in (made.choices[0], streamed.choices[0]):
        calls = [json.loads(call.function.arguments) for call in choice.message.tool_calls]
        assert (choice.finish_reason, calls) == ("tool_calls", [{"city": "Paris"}])
    pieces = [call.function.arguments for chunk in chunks for choice in chunk.choices for call in choice.delta.tool_calls or ()]
    assert json.loads("".join(pieces)) == {"city": "Paris"}
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "tool_calls"
    assert {chunk.id for chunk in chunks} == {chunks[0].id}
    assert isinstance(parsed.choices[0].message.parsed, Town)


async def _last_chat(client: AsyncOpenAI, options: dict[str, Any]) -> Any:
    async with client.chat.completions.stream(**options) as stream:
        assert [event.type async for event in stream][-1] == "tool_calls.function.arguments.done"
        return await stream.get_final_completion()


async def _chunks(client: AsyncOpenAI, options: dict[str, Any]) -> list[Any]:
    return [chunk async for chunk in await client.chat.completions.create(**options, stream=True)]


def test_the_async_client_creates_and_streams_messages(server: Address) -> None:
    from anthropic import AsyncAnthropic

    options: dict[str, Any] = {"model": MODELS[0], "messages": [{"role": "user", "content": QUESTION}], "tools": [TOOL]}

    async def ask() -> tuple[Any, Any]:
        async with AsyncAnthropic(base_url=server.server.url, api_key=server.key, max_retries=0) as client:
            made = await client.messages.create(**options, max_tokens=MOST, **GREEDY)
            async with client.messages.stream(**options, max_tokens=MOST, **GREEDY) as stream:
                return made, await stream.get_final_message()

    for message in asyncio.run(ask()):
        assert message.stop_reason == "tool_use"
        assert [block.input for block in message.content if block.type == "tool_use"] == [{"city": "Paris"}]


def test_limit_that_cuts_an_answer_reaches_the_clients(client: OpenAI, anthropic_client: Any) -> None:
    cut = {"reason": "max_output_tokens", "limit": "request", "value": 16}
    response = client.responses.create(model=MODELS[0], input="Count to 100.", max_output_tokens=16)
    assert response.incomplete_details is not None
    assert response.incomplete_details.to_dict() == cut
    completion = client.chat.completions.create(
        model=MODELS[0], messages=[{"role": "user", "content": "Count to 100."}], max_completion_tokens=16
    )
    assert completion.choices[0].finish_reason == "length"
    assert completion.choices[0].to_dict()["incomplete_details"] == cut
    messages = [{"role": "user", "content": "Count to 100."}]
    with anthropic_client.messages.stream(model=MODELS[0], messages=messages, max_tokens=16) as stream:
        deltas = [event.delta for event in stream if event.type == "message_delta"]
        assert stream.get_final_message().stop_reason == "max_tokens"
    assert [delta.to_dict()["incomplete_details"] for delta in deltas] == [cut]


def test_a_tool_loop_of_messages_goes_round(anthropic_client: Any) -> None:
    messages: list[Any] = [{"role": "user", "content": QUESTION}]
    options: dict[str, Any] = {"model": MODELS[0], "tools": [TOOL], "thinking": SHOWN, "max_tokens": 2000, **GREEDY}
    assert anthropic_client.messages.count_tokens(model=MODELS[0], tools=[TOOL], messages=messages).input_tokens > 0
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


def test_errors_are_those_of_the_packages(client: OpenAI, anthropic_client: Any) -> None:
    from anthropic import AuthenticationError, NotFoundError

    messages = [{"role": "user", "content": "Hi"}]
    with pytest.raises(NotFoundError, match="does not exist"):
        anthropic_client.messages.create(model="none", messages=messages, max_tokens=10)
    with pytest.raises(AuthenticationError):
        anthropic_client.with_options(api_key="sk-wrong").messages.create(model="none", messages=messages, max_tokens=10)
    assert {model.id for model in anthropic_client.models.list()} == set(MODELS)


def test_a_toolset_of_an_mcp_server_that_has_no_address_is_an_error(anthropic_client: Any) -> None:
    from anthropic import APIStatusError, BadRequestError

    options: dict[str, Any] = {
        "model": MODELS[0],
        "max_tokens": 10,
        "messages": [{"role": "user", "content": "Hi"}],
        "mcp_servers": [{"type": "url", "name": "docs", "url": "https://mcp.invalid/mcp"}],
        "tools": [{"type": "mcp_toolset", "mcp_server_name": "docs", "default_config": {"enabled": True}}],
        "betas": ["mcp-client-2025-11-20"],
    }
    messages = anthropic_client.beta.messages
    with pytest.raises(BadRequestError, match="Connection error while communicating with MCP server 'docs'"):
        messages.create(**options)
    with pytest.raises(APIStatusError) as error, messages.stream(**options) as stream:
        stream.get_final_message()
    assert error.value.type == "invalid_request_error"
