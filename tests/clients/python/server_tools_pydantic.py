"""pydantic-ai with the tools that the server runs, and the messages of a turn sent back."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from openai import AsyncOpenAI
from pydantic_ai import Agent
from pydantic_ai.capabilities import NativeTool
from pydantic_ai.models.openai import OpenAIResponsesModel
from pydantic_ai.models.openai import OpenAIResponsesModelSettings as Settings
from pydantic_ai.native_tools import CodeExecutionTool, FileSearchTool, WebSearchTool
from steps import run_steps

client = AsyncOpenAI(max_retries=0)
TEXT = b"Arrakis, the desert planet, was inspired by the scarcity of water."
SETTINGS = Settings(
    openai_include_code_execution_outputs=True,
    openai_include_file_search_results=True,
    openai_include_web_search_sources=True,
)


def agent(*tools: Any, **more: Any) -> Agent:
    capabilities = [NativeTool(tool) for tool in tools]
    return Agent(OpenAIResponsesModel(os.environ["MODEL"]), capabilities=capabilities, model_settings=SETTINGS | more)


async def file_tool() -> FileSearchTool:
    store = await client.vector_stores.create(name="example")
    await client.vector_stores.files.upload_and_poll(vector_store_id=store.id, file=("example.txt", TEXT))
    return FileSearchTool(file_store_ids=[store.id])


def returned(result: Any) -> list[Any]:
    parts = [part for message in result.all_messages() for part in message.parts]
    return [[part.tool_name, part.content["status"]] for part in parts if part.part_kind.endswith("tool-return")]


async def run() -> Any:
    tools = [CodeExecutionTool(), await file_tool(), WebSearchTool(search_context_size="low")]
    results = [await agent(tool).run("Hi") for tool in tools]
    return [[result.output, returned(result)] for result in results]


async def stream() -> Any:
    outcomes = []
    for tool in [CodeExecutionTool(), await file_tool(), WebSearchTool()]:
        async with agent(tool).run_stream("Hi") as result:
            outcomes.append([await result.get_output(), returned(result)])
    return outcomes


async def turns(**more: Any) -> Any:
    everyone = agent(CodeExecutionTool(), await file_tool(), WebSearchTool(), **more)
    first = await everyone.run("All")
    second = await everyone.run("And now?", message_history=first.all_messages())
    return [first.output, second.output]


async def unstored() -> Any:
    return await turns(openai_store=False)


asyncio.run(run_steps(run, stream, turns, unstored))
