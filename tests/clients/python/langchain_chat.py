"""ChatOpenAI of LangChain over the Responses API, in its newest output format."""

from __future__ import annotations

import asyncio
import os
from functools import reduce
from operator import add
from typing import Any

from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from openai import AsyncOpenAI
from steps import failure, run_steps
from weather import Profile, get_weather

weather = tool(get_weather)


def chat(**more: Any) -> ChatOpenAI:
    options = {"model": os.environ["MODEL"], "use_responses_api": True, "max_retries": 0, "output_version": "responses/v1"}
    return ChatOpenAI(**{**options, **more})


async def invoked(model: Any, messages: Any) -> Any:
    return await model.ainvoke(messages)


async def gathered(model: Any, messages: Any) -> Any:
    return reduce(add, [chunk async for chunk in model.astream(messages)])


async def loop(ask: Any, question: str) -> Any:
    model = chat().bind_tools([weather])
    first = await ask(model, [HumanMessage(question)])
    outputs = [ToolMessage(weather.invoke(call["args"]), tool_call_id=call["id"]) for call in first.tool_calls]
    second = await ask(model, [HumanMessage(question), first, *outputs])
    return [[call["args"]["city"] for call in first.tool_calls], second.text]


async def text() -> Any:
    return (await chat().ainvoke("Hi")).text


async def stream() -> Any:
    message = await gathered(chat(), "Think")
    return [message.text, [block["type"] for block in message.content], message.usage_metadata["output_tokens"] > 1]


async def tools() -> Any:
    return await loop(invoked, "One?")


async def parallel() -> Any:
    return await loop(gathered, "Two?")


async def object_() -> Any:
    return (await chat().with_structured_output(Profile).ainvoke("Who?")).model_dump()


async def turns() -> Any:
    model = chat(use_previous_response_id=True)
    first = await model.ainvoke("One")
    return [first.text, (await model.ainvoke([HumanMessage("One"), first, HumanMessage("Two")])).text]


async def conversation() -> Any:
    made = await AsyncOpenAI().conversations.create()
    model = chat(extra_body={"conversation": made.id})
    return [(await model.ainvoke("Three")).text, (await gathered(model, "Four")).text]


async def update() -> Any:
    change = {"type": "configuration_update", "reasoning": {"effort": "high"}}
    return (await chat().ainvoke([HumanMessage([change, {"type": "text", "text": "Hi"}])])).text


async def error() -> Any:
    return await failure(lambda: chat(model="nope").ainvoke("Hi"))


asyncio.run(run_steps(text, stream, tools, parallel, object_, turns, conversation, update, error))
