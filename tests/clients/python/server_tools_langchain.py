"""LangChain with the tools that the server runs, in each of its output formats, with the messages of a turn sent back."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from langchain_core.messages import HumanMessage
from langchain_openai import ChatOpenAI
from openai import AsyncOpenAI
from steps import run_steps

client = AsyncOpenAI(max_retries=0)
CODE = {"type": "code_interpreter", "container": {"type": "auto"}}
WEB = {"type": "web_search"}
TEXT = b"Arrakis, the desert planet, was inspired by the scarcity of water."


def chat(**more: Any) -> ChatOpenAI:
    return ChatOpenAI(model=os.environ["MODEL"], use_responses_api=True, max_retries=0, **more)


async def file_tool() -> dict[str, Any]:
    store = await client.vector_stores.create(name="example")
    await client.vector_stores.files.upload_and_poll(vector_store_id=store.id, file=("example.txt", TEXT))
    return {"type": "file_search", "vector_store_ids": [store.id]}


def annotations(message: Any) -> list[str]:
    texts = [block for block in message.content if block["type"] == "text"]
    return [one["type"] for block in texts for one in block.get("annotations", [])]


def kinds(message: Any) -> list[str]:
    return [block["type"] for block in message.content]


async def invoke() -> Any:
    outcomes = []
    for tool in [CODE, await file_tool(), WEB]:
        message = await chat().bind_tools([tool]).ainvoke("Hi")
        outcomes.append([kinds(message), annotations(message)])
    return outcomes


async def stream() -> Any:
    outcomes = []
    for tool in [CODE, await file_tool(), WEB]:
        whole: Any = None
        async for chunk in chat().bind_tools([tool]).astream("Hi"):
            whole = chunk if whole is None else whole + chunk
        outcomes.append([kinds(whole), annotations(whole)])
    return outcomes


async def turns(**more: Any) -> Any:
    model = chat(**more).bind_tools([CODE, await file_tool(), WEB])
    first = await model.ainvoke("All")
    second = await model.ainvoke([HumanMessage("All"), first, HumanMessage("And now?")])
    return [kinds(first), second.text]


async def newest_format() -> Any:
    return await turns(output_version="v1")


async def unstored() -> Any:
    return await turns(store=False, include=["reasoning.encrypted_content"], output_version="responses/v1")


asyncio.run(run_steps(invoke, stream, turns, newest_format, unstored))
