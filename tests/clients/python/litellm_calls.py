"""LiteLLM, which wraps ids in ids of its own: its Responses calls, and its bridge from chat completions."""

from __future__ import annotations

import asyncio
import json
import os
from typing import Any

import litellm
from steps import failure, run_steps
from weather import Profile

ADDRESS = {"api_base": os.environ["OPENAI_BASE_URL"], "api_key": os.environ["OPENAI_API_KEY"]}
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOL = {"name": "get_weather", "description": "The weather", "parameters": CITY}


async def respond(text: Any, **more: Any) -> Any:
    return await litellm.aresponses(
        input=text, **{"model": f"openai/{os.environ['MODEL']}", "num_retries": 0, **ADDRESS, **more}
    )


async def complete(messages: list[Any], **more: Any) -> Any:
    model = f"openai/responses/{os.environ['MODEL']}"
    return await litellm.acompletion(model=model, messages=messages, num_retries=0, **ADDRESS, **more)


def output_text(response: Any) -> str:
    return "".join(part.text for item in response.output if item.type == "message" for part in item.content)


async def text() -> Any:
    return output_text(await respond("Hi"))


async def stream() -> Any:
    events = [event async for event in await respond("Think", stream=True)]
    return ["".join(event.delta for event in events if event.type == "response.output_text.delta"), events[-1].type.value]


async def tools() -> Any:
    function_tools = [{"type": "function", **TOOL}]
    first = await respond("One?", tools=function_tools)
    calls = [item for item in first.output if item.type == "function_call"]
    outputs = [{"type": "function_call_output", "call_id": call.call_id, "output": "Paris: sunny"} for call in calls]
    second = await respond(outputs, tools=function_tools, previous_response_id=first.id)
    return [[json.loads(call.arguments)["city"] for call in calls], output_text(second)]


async def parallel() -> Any:
    """Through the bridge."""
    asked = {"role": "user", "content": "Two?"}
    function_tools = [{"type": "function", "function": TOOL}]
    message = (await complete([asked], tools=function_tools)).choices[0].message
    cities = [json.loads(call.function.arguments)["city"] for call in message.tool_calls]
    outputs = [
        {"role": "tool", "tool_call_id": call.id, "content": f"{city}: sunny"}
        for call, city in zip(message.tool_calls, cities, strict=True)
    ]
    return [cities, (await complete([asked, message.model_dump(), *outputs], tools=function_tools)).choices[0].message.content]


async def object_() -> Any:
    """Through the bridge."""
    answer = await complete([{"role": "user", "content": "Who?"}], response_format=Profile)
    return json.loads(answer.choices[0].message.content)


async def turns() -> Any:
    first = await respond("One")
    second = await respond("Two", previous_response_id=first.id)
    known = {"custom_llm_provider": "openai", **ADDRESS}
    items = (await litellm.alist_input_items(second.id, **known))["data"]
    got = await litellm.aget_responses(second.id, **known)
    await litellm.adelete_responses(first.id, **known)
    gone = await failure(lambda: litellm.aget_responses(first.id, **known))
    return [output_text(first), output_text(second), len(items), output_text(got), gone]


async def error() -> Any:
    return await failure(lambda: respond("Hi", model="openai/nope"))


litellm.suppress_debug_info = True
asyncio.run(run_steps(text, stream, tools, parallel, object_, turns, error))
