"""The agents package for Python: loops, memory in a conversation, compaction, a shell that the client runs."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from agents import (
    Agent,
    Runner,
    ShellCallOutcome,
    ShellCommandOutput,
    ShellResult,
    ShellTool,
    SQLiteSession,
    function_tool,
    set_default_openai_client,
)
from agents.memory import OpenAIConversationsSession, OpenAIResponsesCompactionSession
from openai import AsyncOpenAI
from steps import failure, run_steps
from weather import Profile, asked, get_weather

client = AsyncOpenAI(max_retries=0)


def agent(**more: Any) -> Agent:
    return Agent(**{"name": "Helper", "instructions": "Be kind.", "model": os.environ["MODEL"], **more})


def kinds(result: Any) -> list[str]:
    return [item.type for item in result.new_items]


async def streamed(made: Agent, question: str, **more: Any) -> Any:
    result = Runner.run_streamed(made, question, **more)
    async for _ in result.stream_events():
        pass
    return result


async def text() -> Any:
    return (await Runner.run(agent(), "Hi")).final_output


async def stream() -> Any:
    result = await streamed(agent(), "Think")
    return [result.final_output, kinds(result)]


async def tools() -> Any:
    return [asked, (await Runner.run(agent(tools=[function_tool(get_weather)]), "One?")).final_output]


async def parallel() -> Any:
    asked.clear()
    return [asked, (await streamed(agent(tools=[function_tool(get_weather)]), "Two?")).final_output]


async def object_() -> Any:
    return (await Runner.run(agent(output_type=Profile), "Who?")).final_output.model_dump()


async def turns() -> Any:
    first = await Runner.run(agent(), "One")
    return [
        first.final_output,
        (await Runner.run(agent(), "Two", previous_response_id=first.last_response_id)).final_output,
    ]


async def conversation() -> Any:
    session = OpenAIConversationsSession(openai_client=client)
    answers = [
        (await Runner.run(agent(), "Three", session=session)).final_output,
        (await streamed(agent(), "Four", session=session)).final_output,
    ]
    items = [item["type"] for item in await session.get_items()]
    await session.pop_item()
    left = len(await session.get_items(limit=10))
    await session.clear_session()
    return [answers, items, left]


async def shell() -> Any:
    def run(request: Any) -> ShellResult:
        done = ShellCallOutcome(type="exit", exit_code=0)
        return ShellResult(output=[ShellCommandOutput(stdout=one, outcome=done) for one in request.data.action.commands])

    result = await Runner.run(agent(tools=[ShellTool(executor=run)]), "Where?")
    return [result.final_output, kinds(result)]


async def compaction() -> Any:
    session = OpenAIResponsesCompactionSession(
        "kept", SQLiteSession("kept"), client=client, model="gpt-5", should_trigger_compaction=lambda _: True
    )
    await session.add_items([{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}])
    await session.run_compaction({"force": True, "compaction_mode": "input"})
    return [item.get("type") for item in await session.get_items()]


async def error() -> Any:
    return await failure(lambda: Runner.run(agent(model="nope"), "Hi"))


set_default_openai_client(client, use_for_tracing=False)
asyncio.run(run_steps(text, stream, tools, parallel, object_, turns, conversation, shell, compaction, error))
