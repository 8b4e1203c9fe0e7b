"""OpenAIResponses of LlamaIndex, which lives on an older openai package."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from llama_index.core.agent.workflow import FunctionAgent, ToolCall
from llama_index.core.llms import ChatMessage
from llama_index.core.tools import FunctionTool
from llama_index.llms.openai import OpenAIResponses
from steps import failure, run_steps
from weather import Profile, get_weather


def llm(**more: Any) -> OpenAIResponses:
    address = {"api_base": os.environ["OPENAI_BASE_URL"], "api_key": os.environ["OPENAI_API_KEY"]}
    return OpenAIResponses(**{"model": os.environ["MODEL"], "context_window": 100_000, "max_retries": 0, **address, **more})


def user(text: str) -> list[ChatMessage]:
    return [ChatMessage(role="user", content=text)]


async def loop(question: str) -> Any:
    running = FunctionAgent(tools=[FunctionTool.from_defaults(get_weather)], llm=llm()).run(question)
    asked = [event.tool_kwargs["city"] async for event in running.stream_events() if type(event) is ToolCall]
    return [sorted(asked), str(await running)]


async def text() -> Any:
    return (await llm().acomplete("Hi")).text


async def stream() -> Any:
    return "".join([chunk.delta or "" async for chunk in await llm().astream_chat(user("Think"))])


async def tools() -> Any:
    return await loop("One?")


async def parallel() -> Any:
    return await loop("Two?")


async def object_() -> Any:
    return (await llm().as_structured_llm(Profile).acomplete("Who?")).raw.model_dump()


async def turns() -> Any:
    tracking = llm(track_previous_responses=True)
    return [(await tracking.achat(user(word))).message.content for word in ("One", "Two")]


async def error() -> Any:
    return await failure(lambda: llm(model="nope").achat(user("Hi")))


asyncio.run(run_steps(text, stream, tools, parallel, object_, turns, error))
