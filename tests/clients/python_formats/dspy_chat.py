"""DSPy: an answer, reasoning, a native call of a function, a signature with typed fields."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import dspy
from steps import failure, run_steps
from weather import get_weather


def model(name: str) -> Any:
    options = {"api_base": os.environ["OPENAI_BASE_URL"], "api_key": os.environ["OPENAI_API_KEY"]}
    return dspy.LM(f"openai/{name}", **options, cache=False, num_retries=0)


llm = model(os.environ["MODEL"])


async def text() -> Any:
    return (await llm.acall("Hi"))[0]


async def thought() -> Any:
    return (await llm.acall("Think"))[0]


async def tools() -> Any:
    signature = dspy.Signature("question: str, tools: list[dspy.Tool] -> outputs: dspy.ToolCalls")
    with dspy.context(lm=llm, adapter=dspy.ChatAdapter(use_native_function_calling=True)):
        predicted = await dspy.Predict(signature).acall(question="One?", tools=[dspy.Tool(get_weather)])
    return [[call.name, call.args] for call in predicted.outputs.tool_calls]


async def object_() -> Any:
    with dspy.context(lm=llm, adapter=dspy.JSONAdapter()):
        predicted = await dspy.Predict("question: str -> name: str, age: int").acall(question="Who?")
    return {"name": predicted.name, "age": predicted.age}


async def error() -> Any:
    return await failure(lambda: model("nope").acall("Hi"))


asyncio.run(run_steps(text, thought, tools, object_, error))
