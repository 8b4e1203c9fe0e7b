"""The agents package for Python with tools that the server runs: code interpreter, file search and web search."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from agents import (
    Agent,
    CodeInterpreterTool,
    FileSearchTool,
    ModelSettings,
    Runner,
    WebSearchTool,
    set_default_openai_client,
)
from openai import AsyncOpenAI
from openai.types.responses.web_search_tool import Filters
from steps import run_steps

client = AsyncOpenAI(max_retries=0)
CODE = CodeInterpreterTool(tool_config={"type": "code_interpreter", "container": {"type": "auto"}})
TEXT = "Arrakis, the desert planet, was inspired by the scarcity of water."


def agent(*tools: Any, **more: Any) -> Agent:
    return Agent(name="Helper", instructions="Be kind.", model=os.environ["MODEL"], tools=list(tools), **more)


def calls(result: Any) -> list[Any]:
    return [one.raw_item for one in result.new_items if one.type == "tool_call_item"]


def annotations(result: Any) -> list[str]:
    """Return the annotations of the answer with the covered texts."""
    part = result.new_items[-1].raw_item.content[0]
    return [_cited(part.text, one) for one in part.annotations]


def _cited(text: str, one: Any) -> str:
    if one.type == "file_citation":
        return f"{one.filename} at {one.index} of {len(text)}"
    return f"{one.type} {text[one.start_index : one.end_index]}"


async def store() -> tuple[Any, FileSearchTool]:
    file = await client.files.create(file=("example.txt", TEXT.encode()), purpose="assistants")
    made = await client.vector_stores.create(name="example", expires_after={"anchor": "last_active_at", "days": 1})
    indexed = await client.vector_stores.files.create_and_poll(vector_store_id=made.id, file_id=file.id)
    return indexed, FileSearchTool(max_num_results=3, vector_store_ids=[made.id], include_search_results=True)


async def code() -> Any:
    result = Runner.run_streamed(agent(CODE), "What is six times seven?")
    items = [event.item async for event in result.stream_events() if event.type == "run_item_stream_event"]
    return [result.final_output, [item.raw_item.code for item in items if item.type == "tool_call_item"]]


async def files() -> Any:
    result = await Runner.run(agent(CODE), "Write a report.")
    part = result.new_items[-1].raw_item.content[0]
    [one] = part.annotations
    content = await client.containers.files.content.retrieve(one.file_id, container_id=one.container_id)
    return [annotations(result), content.text]


async def file_search() -> Any:
    indexed, tool = await store()
    result = await Runner.run(agent(tool), "Tell me about Arrakis.")
    call = calls(result)[0]
    await client.vector_stores.delete(tool.vector_store_ids[0])
    await client.files.delete(indexed.id)
    search_outcome = [indexed.status, call.queries, [one.text for one in call.results]]
    return [result.final_output, search_outcome, annotations(result)]


async def web_search() -> Any:
    tool = WebSearchTool(user_location={"type": "approximate", "city": "New York"})
    result = Runner.run_streamed(agent(tool), "What causes tides?")
    async for _ in result.stream_events():
        pass
    return [[one.action.type for one in calls(result)], annotations(result)]


async def filtered_web_search() -> Any:
    tool = WebSearchTool(filters=Filters(allowed_domains=["tides.example"]), search_context_size="medium")
    include = ModelSettings(response_include=["web_search_call.action.sources"], verbosity="low")
    result = await Runner.run(agent(tool, model_settings=include), "What causes tides?")
    return [[one.url for one in calls(result)[0].action.sources], annotations(result)]


async def turns() -> Any:
    _, tool = await store()
    everyone = agent(CODE, tool, WebSearchTool())
    first = await Runner.run(everyone, "Use all tools.")
    second = await Runner.run(everyone, [*first.to_input_list(), {"role": "user", "content": "And now?"}])
    return [[one.type for one in calls(first)], second.final_output]


async def failures() -> Any:
    _, tool = await store()
    everyone = agent(CODE, tool, WebSearchTool())
    first = await Runner.run(everyone, "Fail.")
    second = await Runner.run(everyone, [*first.to_input_list(), {"role": "user", "content": "And now?"}])
    return [[one.status for one in calls(first)], second.final_output]


set_default_openai_client(client, use_for_tracing=False)
asyncio.run(run_steps(code, files, file_search, web_search, filtered_web_search, turns, failures))
