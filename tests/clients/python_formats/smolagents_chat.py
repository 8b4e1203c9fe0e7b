"""smolagents: an answer, a stream, an agent with a tool."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from smolagents import ChatMessage, OpenAIServerModel, ToolCallingAgent, tool
from steps import failure, run_steps
from weather import get_weather


def model(name: str) -> Any:
    options = {"api_base": os.environ["OPENAI_BASE_URL"], "api_key": os.environ["OPENAI_API_KEY"]}
    return OpenAIServerModel(model_id=name, **options, client_kwargs={"max_retries": 0})


def messages(text: str) -> list[Any]:
    return [ChatMessage(role="user", content=[{"type": "text", "text": text}])]


llm = model(os.environ["MODEL"])


async def text() -> Any:
    return llm(messages("Hi")).content


async def stream() -> Any:
    return "".join(delta.content or "" for delta in llm.generate_stream(messages("Think")))


async def tools() -> Any:
    agent = ToolCallingAgent(tools=[tool(get_weather)], model=llm, max_steps=3, verbosity_level=0)
    answer = agent.run("One?")
    return [[call.arguments for entry in agent.memory.steps for call in getattr(entry, "tool_calls", None) or ()], answer]


async def error() -> Any:
    async def ask() -> Any:
        return model("nope")(messages("Hi"))

    return await failure(ask)


asyncio.run(run_steps(text, stream, tools, error))
