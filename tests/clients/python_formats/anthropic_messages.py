"""Anthropic's package: messages, streams, thinking, tools, its tool runner, an object, counting."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from anthropic import AsyncAnthropic, beta_async_tool
from steps import failure, run_steps
from weather import Profile, get_weather

client = AsyncAnthropic(base_url=os.environ["SERVER_URL"], max_retries=0)
OPTIONS: dict[str, Any] = {"model": os.environ["MODEL"], "max_tokens": 4000}
THINKING: dict[str, Any] = {"thinking": {"type": "enabled", "budget_tokens": 1024}}
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS: Any = [{"name": "get_weather", "description": "The weather", "input_schema": CITY}]


def user(content: Any) -> Any:
    return {"role": "user", "content": content}


async def made(*messages: Any, **more: Any) -> Any:
    return await client.messages.create(**OPTIONS, **THINKING, messages=messages, **more)


async def streamed(*messages: Any, **more: Any) -> Any:
    async with client.messages.stream(**OPTIONS, **THINKING, messages=messages, **more) as stream:
        return await stream.get_final_message()


async def loop(ask: Any, question: str) -> Any:
    first = await ask(user(question), tools=TOOLS)
    calls = [block for block in first.content if block.type == "tool_use"]
    results = [{"type": "tool_result", "tool_use_id": call.id, "content": get_weather(call.input["city"])} for call in calls]
    second = await ask(user(question), {"role": "assistant", "content": first.content}, user(results), tools=TOOLS)
    return [[call.input["city"] for call in calls], second.content[-1].text]


async def text() -> Any:
    message = await client.messages.create(**OPTIONS, messages=[user("Hi")])
    return message.content[0].text


async def stream() -> Any:
    message = await streamed(user("Think"))
    thought, answer = message.content
    return [answer.text, thought.thinking, bool(thought.signature), message.stop_reason, message.usage.output_tokens > 1]


async def tools() -> Any:
    return await loop(made, "One?")


async def parallel() -> Any:
    return await loop(streamed, "Two?")


async def object_() -> Any:
    message = await client.messages.parse(**OPTIONS, messages=[user("Who?")], output_format=Profile)
    return message.parsed_output.model_dump()


async def turns() -> Any:
    first = await made(user("One"))
    second = await made(user("One"), {"role": "assistant", "content": first.content}, user("Two"))
    return [first.content[-1].text, second.content[-1].text]


async def runner() -> Any:
    """Run the loop of the package, which asks for a thread that the server keeps, and goes on without one."""

    @beta_async_tool(name="get_weather")
    async def weather(city: str) -> str:
        return get_weather(city)

    runs = client.beta.messages.tool_runner(**OPTIONS, tools=[weather], messages=[user("One?")])
    return (await runs.until_done()).content[-1].text


async def count() -> Any:
    counted = await client.messages.count_tokens(model=OPTIONS["model"], messages=[user("Hi")])
    with_tools = await client.beta.messages.count_tokens(model=OPTIONS["model"], messages=[user("Hi")], tools=TOOLS)
    return 0 < counted.input_tokens < with_tools.input_tokens


async def models() -> Any:
    listed = [model.id async for model in client.models.list()]
    return OPTIONS["model"] in listed


async def error() -> Any:
    return await failure(lambda: client.messages.create(**{**OPTIONS, "model": "nope"}, messages=[user("Hi")]))


asyncio.run(run_steps(text, stream, tools, parallel, object_, turns, runner, count, models, error))
