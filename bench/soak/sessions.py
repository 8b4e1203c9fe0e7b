"""Sessions of clients with the demo model: each uses a part of the API as a program of a user would, and checks the results."""

from __future__ import annotations

import asyncio
import random
import string
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeAlias

from openai import AsyncOpenAI, BadRequestError

MODEL: Final = "demo-chat"
ENDED: Final = ("completed", "incomplete")
POLL_S: Final = 0.5
POLL_LIMIT_S: Final = 120.0
UPLOAD_BYTES: Final = 100_000
NAMES: Final = ("Ada", "Grace", "Linus", "Ngozi", "Mei")
STORY: Final = "Tell me a long story about a dragon."
SUM: Final = "Run print(6*7) in Python."
WEATHER: Final[Any] = {
    "type": "function",
    "name": "get_weather",
    "description": "Get the weather in a city",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    "strict": False,
}

Session: TypeAlias = Callable[[AsyncOpenAI, random.Random], Awaitable[None]]


class WrongResult(Exception):
    """Result of a session that is not as expected."""


def check(condition: bool, message: str) -> None:
    """Raise WrongResult with `message` unless the condition holds."""
    if not condition:
        raise WrongResult(message)


async def stream(client: AsyncOpenAI, chance: random.Random) -> None:
    """Read a stream to the end; a fourth of the streams is cut by the client."""
    quits = chance.randint(3, 30) if chance.random() < 0.25 else None
    count = 0
    async with await client.responses.create(model=MODEL, input=STORY, max_output_tokens=120, stream=True) as events:
        async for event in events:
            check(event.sequence_number == count, f"event {event.sequence_number} where {count} was due")
            count += 1
            if count == quits:
                return
    check(event.type.removeprefix("response.") in ENDED, f"the stream ended with {event.type}")


async def background(client: AsyncOpenAI, chance: random.Random) -> None:
    """Poll a background response, or cancel the response."""
    response = await client.responses.create(model=MODEL, input=STORY, max_output_tokens=120, background=True)
    if chance.random() < 0.2:
        await _cancel(client, response.id)
        return
    async with asyncio.timeout(POLL_LIMIT_S):
        while response.status in ("queued", "in_progress"):
            await asyncio.sleep(POLL_S)
            response = await client.responses.retrieve(response.id)
    check(response.status in ENDED, f"a background response is {response.status}: {response.error}")


async def _cancel(client: AsyncOpenAI, response_id: str) -> None:
    """Cancel a response, which may have ended meanwhile."""
    try:
        response = await client.responses.cancel(response_id)
        check(response.status == "cancelled", f"a cancelled response is {response.status}")
    except BadRequestError:
        response = await client.responses.retrieve(response_id)
        check(response.status in ENDED, f"a response that was not cancelled is {response.status}")


async def conversation(client: AsyncOpenAI, chance: random.Random) -> None:
    """Hold a conversation of a few turns; every second conversation is deleted."""
    name = chance.choice(NAMES)
    thread = await client.conversations.create()
    for text in (f"Hi! My name is {name}.", "What is my name?", "Tell me a short story."):
        response = await client.responses.create(model=MODEL, input=text, conversation=thread.id, max_output_tokens=60)
        check(response.status in ENDED, f"a turn is {response.status}: {response.error}")
    items = [item async for item in client.conversations.items.list(thread.id)]
    check(len(items) >= 6, f"{len(items)} items after three turns")
    if chance.random() < 0.5:
        await client.conversations.delete(thread.id)


async def function(client: AsyncOpenAI, chance: random.Random) -> None:
    """Answer the call of a function."""
    city = chance.choice(("Paris", "Tokyo", "Lagos"))
    text = f"What is the weather in {city}?"
    first = await client.responses.create(model=MODEL, input=text, tools=[WEATHER], tool_choice="required")
    calls = [item for item in first.output if item.type == "function_call"]
    check(bool(calls), "a required call is missing")
    outputs: Any = [{"type": "function_call_output", "call_id": call.call_id, "output": "sunny, 15 °C"} for call in calls]
    second = await client.responses.create(model=MODEL, input=outputs, previous_response_id=first.id, tools=[WEATHER])
    check(second.status in ENDED, f"the turn with the output is {second.status}: {second.error}")


async def server_tool(client: AsyncOpenAI, text: str, tool: Mapping[str, Any], kind: str) -> None:
    """Let the server run a tool; the output has an item of the type `kind`."""
    tools: Any = [tool]
    response = await client.responses.create(model=MODEL, input=text, tools=tools, max_output_tokens=300)
    check(response.status in ENDED, f"the response is {response.status}: {response.error}")
    check(kind in [item.type for item in response.output], f"no {kind} in the output")


async def mcp(client: AsyncOpenAI, chance: random.Random) -> None:
    """Call a tool of an MCP server."""
    text = f"Add {chance.randint(10, 99)} and {chance.randint(10, 99)}."
    await server_tool(client, text, {"type": "mcp", "server_label": "demo", "require_approval": "never"}, "mcp_list_tools")


async def code(client: AsyncOpenAI, chance: random.Random) -> None:
    """Run code in a container."""
    del chance
    tool = {"type": "code_interpreter", "container": {"type": "auto"}}
    await server_tool(client, SUM, tool, "code_interpreter_call")


async def upload(client: AsyncOpenAI, chance: random.Random) -> None:
    """Upload a file, compare the content, ask about the file, and delete the file."""
    content = "".join(chance.choices(string.ascii_lowercase + " \n", k=UPLOAD_BYTES)).encode()
    file = await client.files.create(file=("notes.txt", content), purpose="user_data")
    try:
        check((await client.files.content(file.id)).content == content, "the file has another content")
        part = {"type": "input_file", "file_id": (await client.files.create(file=("a.txt", b"Hi!"), purpose="user_data")).id}
        message: Any = [{"role": "user", "content": [part, {"type": "input_text", "text": "Hello!"}]}]
        response = await client.responses.create(model=MODEL, input=message, max_output_tokens=40)
        check(response.status in ENDED, f"the response is {response.status}: {response.error}")
        await client.files.delete(part["file_id"])
    finally:
        await client.files.delete(file.id)


async def search(client: AsyncOpenAI, chance: random.Random) -> None:
    """Put a file into a vector store, search the store by a response, and delete both."""
    word = "".join(chance.choices(string.ascii_lowercase, k=8))
    file = await client.files.create(file=("vacation.txt", f"The vacation is in {word}.".encode()), purpose="assistants")
    store = await client.vector_stores.create(name=word)
    try:
        entry = await client.vector_stores.files.create_and_poll(file.id, vector_store_id=store.id, poll_interval_ms=500)
        check(entry.status == "completed", f"the file of the store is {entry.status}: {entry.last_error}")
        hits = await client.vector_stores.search(store.id, query=word)
        check(word in str([hit.content for hit in hits.data]), "the search misses the file")
        tool = {"type": "file_search", "vector_store_ids": [store.id]}
        await server_tool(client, 'Search the files for "vacation".', tool, "file_search_call")
    finally:
        await client.vector_stores.delete(store.id)
        await client.files.delete(file.id)


async def chat_completion(client: AsyncOpenAI, chance: random.Random) -> None:
    """Read a stream of Chat Completions."""
    message: Any = [{"role": "user", "content": f"Hi, my name is {chance.choice(NAMES)}."}]
    reason = None
    async with await client.chat.completions.create(model=MODEL, messages=message, stream=True, max_tokens=60) as chunks:
        async for chunk in chunks:
            reason = next((choice.finish_reason for choice in chunk.choices if choice.finish_reason), reason)
    check(reason in ("stop", "length"), f"the stream ended with {reason}")


# How often a session of each kind is drawn.
SESSIONS: Final[Mapping[Session, int]] = {
    stream: 8,
    background: 3,
    conversation: 3,
    function: 3,
    mcp: 2,
    code: 2,
    upload: 2,
    search: 1,
    chat_completion: 3,
}
