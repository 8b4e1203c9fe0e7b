"""Driver of the OpenAI Agents SDK: does one task, given as JSON, and prints a line of JSON."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from agents import Agent, Runner, function_tool, set_default_openai_client, set_tracing_disabled
from openai import AsyncOpenAI
from pydantic import BaseModel

TASK = json.loads(sys.argv[1])
PROMPTS: list[str] = TASK["prompts"]
FORECASTS: dict[str, str] = TASK["forecasts"]


class Person(BaseModel):
    """Person with a name and an age in years."""

    name: str
    age: int


@function_tool
def get_weather(city: str) -> str:
    """Get the current weather in a city."""
    return FORECASTS.get(city, "unknown city")


def agent(**more: Any) -> Agent:
    return Agent(name="Assistant", model=os.environ["MODEL"], **more)


async def single() -> dict[str, Any]:
    return {"texts": [(await Runner.run(agent(), PROMPTS[0])).final_output]}


async def memory() -> dict[str, Any]:
    texts, last = [], None
    for prompt in PROMPTS:
        result = await Runner.run(agent(), prompt, previous_response_id=last)
        texts.append(result.final_output)
        last = result.last_response_id
    return {"texts": texts}


async def tools() -> dict[str, Any]:
    return {"texts": [(await Runner.run(agent(tools=[get_weather]), PROMPTS[0])).final_output]}


async def schema() -> dict[str, Any]:
    return {"texts": [(await Runner.run(agent(output_type=Person), PROMPTS[0])).final_output.model_dump_json()]}


async def stream() -> dict[str, Any]:
    result = Runner.run_streamed(agent(), PROMPTS[0])
    events = [event.data async for event in result.stream_events() if event.type == "raw_response_event"]
    deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
    return {"texts": [result.final_output], "deltas": deltas}


def read_picture() -> str:
    return f"data:image/png;base64,{base64.b64encode(Path(TASK['image']).read_bytes()).decode()}"


async def image() -> dict[str, Any]:
    picture = {"type": "input_image", "image_url": read_picture(), "detail": "auto"}
    content = [{"type": "input_text", "text": PROMPTS[0]}, picture]
    return {"texts": [(await Runner.run(agent(), [{"role": "user", "content": content}])).final_output]}


WAYS: dict[str, Callable[[], Awaitable[dict[str, Any]]]] = {
    way.__name__: way for way in (single, memory, tools, schema, stream, image)
}


async def main() -> None:
    set_tracing_disabled(True)
    set_default_openai_client(AsyncOpenAI(max_retries=0), use_for_tracing=False)
    began = time.monotonic()
    try:
        outcome = await WAYS[TASK["way"]]()
    except Exception as error:
        outcome = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps({**outcome, "seconds": time.monotonic() - began}))


asyncio.run(main())
