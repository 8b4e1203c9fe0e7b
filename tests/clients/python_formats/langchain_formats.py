"""LangChain: ChatOpenAI over Chat Completions, or ChatAnthropic over Messages, by the name of the model."""

from __future__ import annotations

import asyncio
import os
from functools import reduce
from operator import add
from typing import Any

from langchain_anthropic import ChatAnthropic
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from steps import failure, run_steps
from weather import Profile, get_weather

weather = tool(get_weather)


def chat(model: str) -> Any:
    if os.environ["MODEL"].endswith("-messages"):
        thinking = {"type": "enabled", "budget_tokens": 1024}
        return ChatAnthropic(model=model, base_url=os.environ["SERVER_URL"], max_tokens=4000, max_retries=0, thinking=thinking)
    return ChatOpenAI(model=model, use_responses_api=False, stream_usage=True, max_retries=0)


llm = chat(os.environ["MODEL"])


async def invoked(model: Any, messages: Any) -> Any:
    return await model.ainvoke(messages)


async def gathered(model: Any, messages: Any) -> Any:
    return reduce(add, [chunk async for chunk in model.astream(messages)])


async def loop(ask: Any, question: str) -> Any:
    model = llm.bind_tools([weather])
    first = await ask(model, [HumanMessage(question)])
    outputs = [ToolMessage(weather.invoke(call["args"]), tool_call_id=call["id"]) for call in first.tool_calls]
    second = await ask(model, [HumanMessage(question), first, *outputs])
    return [[call["args"]["city"] for call in first.tool_calls], second.text]


async def text() -> Any:
    return (await llm.ainvoke("Hi")).text


async def stream() -> Any:
    message = await gathered(llm, "Think")
    return [message.text, message.usage_metadata["output_tokens"] > 1]


async def tools() -> Any:
    return await loop(invoked, "One?")


async def parallel() -> Any:
    return await loop(gathered, "Two?")


async def object_() -> Any:
    return (await llm.with_structured_output(Profile, method="json_schema").ainvoke("Who?")).model_dump()


async def turns() -> Any:
    first = await llm.ainvoke([HumanMessage("One")])
    second = await llm.ainvoke([HumanMessage("One"), first, HumanMessage("Two")])
    return [first.text, second.text]


async def error() -> Any:
    return await failure(lambda: chat("nope").ainvoke("Hi"))


asyncio.run(run_steps(text, stream, tools, parallel, object_, turns, error))
