"""LiteLLM over Chat Completions: an answer, a stream, tools, an object, two turns, with messages sent back unchanged."""

from __future__ import annotations

import asyncio
import json
import os
from typing import Any

import litellm
from steps import failure, run_steps
from weather import Profile, get_weather

FUNCTION = {
    "name": "get_weather",
    "description": "The weather.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}


def user_message(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


async def complete(*messages: Any, model: str = os.environ["MODEL"], **more: Any) -> Any:
    return await litellm.acompletion(model=f"openai/{model}", messages=list(messages), num_retries=0, **more)


async def text() -> Any:
    return (await complete(user_message("Hi"))).choices[0].message.content


async def stream() -> Any:
    joined = litellm.stream_chunk_builder([chunk async for chunk in await complete(user_message("Think"), stream=True)])
    return [joined.choices[0].message.content, joined.choices[0].message.reasoning_content]


async def loop(question: str) -> Any:
    tools = [{"type": "function", "function": FUNCTION}]
    message = (await complete(user_message(question), tools=tools)).choices[0].message
    cities = [json.loads(call.function.arguments)["city"] for call in message.tool_calls]
    results = [
        {"role": "tool", "tool_call_id": call.id, "content": get_weather(city)}
        for call, city in zip(message.tool_calls, cities, strict=True)
    ]
    return [cities, (await complete(user_message(question), message, *results, tools=tools)).choices[0].message.content]


async def tools() -> Any:
    return await loop("One?")


async def parallel() -> Any:
    return await loop("Two?")


async def object_() -> Any:
    return json.loads((await complete(user_message("Who?"), response_format=Profile)).choices[0].message.content)


async def turns() -> Any:
    first = (await complete(user_message("One"))).choices[0].message
    return [first.content, (await complete(user_message("One"), first, user_message("Two"))).choices[0].message.content]


async def error() -> Any:
    return await failure(lambda: complete(user_message("Hi"), model="nope"))


asyncio.run(run_steps(text, stream, tools, parallel, object_, turns, error))
