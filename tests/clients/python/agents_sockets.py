"""The agents package for Python with its WebSocket transport."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from agents import Agent, ModelSettings, function_tool, responses_websocket_session
from steps import run_steps
from weather import asked, get_weather


def agent(**more: Any) -> Agent:
    return Agent(**{"name": "Helper", "instructions": "Be kind.", "model": os.environ["MODEL"], **more})


async def main() -> None:
    async with responses_websocket_session() as session:

        async def text() -> Any:
            return (await session.run(agent(), "Hi")).final_output

        async def stream() -> Any:
            result = session.run_streamed(agent(), "Think")
            async for _ in result.stream_events():
                pass
            return [result.final_output, [item.type for item in result.new_items]]

        async def tools() -> Any:
            return [asked, (await session.run(agent(tools=[function_tool(get_weather)]), "One?")).final_output]

        async def parallel() -> Any:
            asked.clear()
            unstored = agent(tools=[function_tool(get_weather)], model_settings=ModelSettings(store=False))
            return [asked, (await session.run(unstored, "Two?")).final_output]

        async def turns() -> Any:
            first = await session.run(agent(), "One")
            second = await session.run(agent(), "Two", previous_response_id=first.last_response_id)
            return [first.final_output, second.final_output]

        await run_steps(text, stream, tools, parallel, turns)


asyncio.run(main())
