"""Google's ADK by LiteLlm: an answer, a stream, tools, a session of two turns, an object."""

from __future__ import annotations

import asyncio
import json
import os
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.models.lite_llm import LiteLlm
from google.adk.runners import InMemoryRunner
from google.genai import types
from steps import failure, run_steps
from weather import Profile, get_weather


def model(name: str) -> Any:
    options = {"api_base": os.environ["OPENAI_BASE_URL"], "api_key": os.environ["OPENAI_API_KEY"]}
    return LiteLlm(model=f"openai/{name}", **options, num_retries=0)


llm = model(os.environ["MODEL"])


async def talk(*questions: str, stream: bool = False, **more: Any) -> Any:
    """Return the parts of the answers: the arguments of calls, thoughts and texts."""
    agent = LlmAgent(name="helper", instruction="Be kind.", **{"model": llm, **more})
    runner = InMemoryRunner(agent=agent, app_name="app")
    session = await runner.session_service.create_session(app_name="app", user_id="user")
    config = RunConfig(streaming_mode=StreamingMode.SSE if stream else StreamingMode.NONE)
    parts = []
    for question in questions:
        message = types.Content(role="user", parts=[types.Part(text=question)])
        async for event in runner.run_async(user_id="user", session_id=session.id, new_message=message, run_config=config):
            parts += [] if event.partial or event.content is None else event.content.parts
    return [
        part.function_call.args if part.function_call else f"({part.text})" if part.thought else part.text
        for part in parts
        if part.function_call or part.text
    ]


async def text() -> Any:
    return await talk("Hi")


async def stream() -> Any:
    return await talk("Think", stream=True)


async def tools() -> Any:
    return await talk("One?", tools=[get_weather])


async def parallel() -> Any:
    return await talk("Two?", stream=True, tools=[get_weather])


async def object_() -> Any:
    return json.loads((await talk("Who?", output_schema=Profile))[-1])


async def turns() -> Any:
    return await talk("One", "Two")


async def error() -> Any:
    return await failure(lambda: talk("Hi", model=model("nope")))


asyncio.run(run_steps(text, stream, tools, parallel, object_, turns, error))
