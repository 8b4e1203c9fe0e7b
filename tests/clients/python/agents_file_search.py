"""The agents package for Python with its file search tool, as in its example: a file, a vector store, a question, an answer."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from agents import Agent, FileSearchTool, Runner, set_default_openai_client
from openai import AsyncOpenAI
from steps import step

client = AsyncOpenAI(max_retries=0)
TEXT = "Arrakis, the desert planet, is the only source of the spice."


async def search() -> Any:
    file = await client.files.create(file=("arrakis.txt", TEXT.encode()), purpose="assistants")
    expiry: Any = {"anchor": "last_active_at", "days": 1}
    store = await client.vector_stores.create(name="example", expires_after=expiry)
    indexed = await client.vector_stores.files.create_and_poll(vector_store_id=store.id, file_id=file.id)
    tool = FileSearchTool(max_num_results=3, vector_store_ids=[store.id], include_search_results=True)
    agent = Agent(name="File searcher", model=os.environ["MODEL"], tools=[tool])
    result = await Runner.run(agent, "Which planet has the spice?")
    _, call, message = (item.raw_item for item in result.new_items)
    (annotation,) = message.content[0].annotations
    await client.vector_stores.delete(store.id)
    await client.files.delete(file.id)
    return [
        indexed.status,
        [item.type for item in result.new_items],
        [call.queries, [result.text for result in call.results]],
        result.final_output,
        [annotation.type, annotation.file_id == file.id, annotation.filename, annotation.index],
    ]


set_default_openai_client(client)
asyncio.run(step("search", search))
