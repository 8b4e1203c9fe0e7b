"""Agents of pydantic-ai over the Responses API: replayed reasoning, native output, compaction by the server."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from openai import AsyncOpenAI
from pydantic_ai import Agent, NativeOutput
from pydantic_ai.models.openai import OpenAICompaction, OpenAIResponsesModel
from pydantic_ai.models.openai import OpenAIResponsesModelSettings as Settings
from steps import failure, run_steps
from weather import Profile, asked, get_weather


def agent(name: str = os.environ["MODEL"], **more: Any) -> Agent:
    return Agent(OpenAIResponsesModel(name), **more)


async def text() -> Any:
    return (await agent(instructions="Be kind.").run("Hi")).output


async def stream() -> Any:
    async with agent().run_stream("Think") as result:
        deltas = [delta async for delta in result.stream_text(delta=True, debounce_by=None)]
    return ["".join(deltas), [type(part).__name__ for part in result.all_messages()[-1].parts]]


async def tools() -> Any:
    return [asked, (await agent(tools=[get_weather]).run("One?")).output]


async def parallel() -> Any:
    asked.clear()
    async with agent(tools=[get_weather]).run_stream("Two?") as result:
        return [sorted(asked, reverse=True), await result.get_output()]


async def object_() -> Any:
    return (await agent(output_type=NativeOutput(Profile)).run("Who?")).output.model_dump()


async def turns() -> Any:
    made = agent(model_settings=Settings(openai_store=False))
    first = await made.run("One")
    return [first.output, (await made.run("Two", message_history=first.all_messages())).output]


async def conversation() -> Any:
    stored = await AsyncOpenAI().conversations.create()
    made = agent(model_settings=Settings(openai_conversation_id=stored.id))
    return [(await made.run("Three")).output, (await made.run("Four")).output]


async def compaction() -> Any:
    return (await agent(capabilities=[OpenAICompaction()]).run("Hi")).output


async def error() -> Any:
    return await failure(lambda: agent("nope").run("Hi"))


asyncio.run(run_steps(text, stream, tools, parallel, object_, turns, conversation, compaction, error))
