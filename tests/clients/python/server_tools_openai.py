"""The openai package for Python: files, vector stores and containers, and responses with the tools that use these."""

from __future__ import annotations

import asyncio
import io
import os
from typing import Any

from openai import AsyncOpenAI
from steps import failure, run_steps
from weather import Profile

client = AsyncOpenAI(max_retries=0)
MODEL = os.environ["MODEL"]
CODE: Any = {"type": "code_interpreter", "container": {"type": "auto"}}
WEB: Any = {"type": "web_search", "search_context_size": "low"}
INCLUDE: Any = [
    "code_interpreter_call.outputs",
    "file_search_call.results",
    "web_search_call.action.sources",
    "web_search_call.results",
    "reasoning.encrypted_content",
]
# Code of another response would wait two minutes.
LIMIT_S = 60.0
TEXT = "Arrakis, the desert planet, was inspired by the scarcity of water."


async def upload(name: str = "example.txt", text: str = TEXT) -> Any:
    return await client.files.create(file=(name, text.encode()), purpose="assistants")


async def file_tool() -> Any:
    store = await client.vector_stores.create(name="example")
    await client.vector_stores.files.create_and_poll(vector_store_id=store.id, file_id=(await upload()).id)
    return {"type": "file_search", "vector_store_ids": [store.id]}


def cited(response: Any) -> list[str]:
    """Return the annotations of the answer with the covered texts."""
    part = response.output[-1].content[0]
    return [
        f"{one.filename} at {one.index} of {len(part.text)}"
        if one.type == "file_citation"
        else f"{one.type} {part.text[one.start_index : one.end_index]}"
        for one in part.annotations
    ]


def shown(response: Any) -> list[Any]:
    """The parts of the calls that only an include shows."""
    outputs = []
    for item in response.output:
        if item.type == "code_interpreter_call":
            outputs.append(item.outputs and [one.type for one in item.outputs])
        elif item.type == "file_search_call":
            outputs.append(item.results and [one.filename for one in item.results])
        elif item.type == "web_search_call":
            sources = getattr(item.action, "sources", None)
            outputs.append([item.action.type, sources and [one.url for one in sources]])
    return outputs


async def files() -> Any:
    made = await client.files.create(
        file=("notes.txt", io.BytesIO(b"# Notes")), purpose="user_data", expires_after={"anchor": "created_at", "seconds": 3600}
    )
    done = await client.files.wait_for_processing(made.id, poll_interval=0.05)
    listed = [one.id async for one in client.files.list(purpose="user_data", limit=1)]
    content = (await client.files.content(made.id)).text
    gone = await client.files.delete(made.id)
    missing = await failure(lambda: client.files.retrieve(made.id))
    return [
        done.status,
        done.bytes,
        done.expires_at == done.created_at + 3600,
        made.id in listed,
        content,
        gone.deleted,
        missing,
    ]


async def vector_stores() -> Any:
    store = await client.vector_stores.create(name="books", metadata={"kind": "test"})
    stores = client.vector_stores
    one = await stores.files.create_and_poll(
        vector_store_id=store.id, file_id=(await upload()).id, attributes={"year": 1965}, poll_interval_ms=50
    )
    two = await stores.files.upload_and_poll(vector_store_id=store.id, file=("two.txt", b"Worms make spice."))
    batch = await stores.file_batches.upload_and_poll(store.id, files=[("three.txt", b"Three."), ("four.txt", b"Four.")])
    again = await stores.file_batches.create_and_poll(store.id, file_ids=[(await upload("five.txt", "Five.")).id])
    in_batch = [file.id async for file in stores.file_batches.list_files(batch.id, vector_store_id=store.id, limit=1)]
    updated_file = await stores.files.update(one.id, vector_store_id=store.id, attributes={"year": 1966})
    parts = [part.text async for part in stores.files.content(one.id, vector_store_id=store.id)]
    results = [hit async for hit in stores.search(store.id, query="spice", max_num_results=2, rewrite_query=False)]
    old = {"type": "eq", "key": "year", "value": 1966}
    filtered = [hit async for hit in stores.search(store.id, query=["water", "spice"], filters=old)]
    listed = [file.id async for file in stores.files.list(store.id, limit=2, filter="completed", order="asc")]
    await stores.files.delete(two.id, vector_store_id=store.id)
    changed = await stores.update(store.id, name="novels", expires_after={"anchor": "last_active_at", "days": 2})
    names = [made.name async for made in stores.list(limit=1) if made.id == store.id]
    counts = (await stores.retrieve(store.id)).file_counts
    gone = await stores.delete(store.id)
    return {
        "files": [one.status, two.status, batch.status, batch.file_counts.completed, again.status, len(in_batch), len(listed)],
        "content": parts,
        "search": [[hit.filename, hit.content[0].text, 0 < hit.score <= 1] for hit in results],
        "filtered": [[hit.filename, hit.attributes] for hit in filtered],
        "changed": [
            updated_file.attributes,
            changed.name,
            changed.metadata,
            names,
            counts.completed,
            counts.total,
            gone.deleted,
        ],
    }


async def containers() -> Any:
    source = await upload("data.csv", "a,b")
    made = await client.containers.create(
        name="work", file_ids=[source.id], memory_limit="1g", expires_after={"anchor": "last_active_at", "minutes": 5}
    )
    files = client.containers.files
    own_file = await files.create(made.id, file=("own.txt", b"mine"))
    linked = await files.create(made.id, file_id=(await upload("linked.txt", "there")).id)
    paths = sorted([one.path async for one in files.list(made.id, limit=1)])
    content = (await files.content.retrieve(linked.id, container_id=made.id)).text
    first = await files.retrieve(own_file.id, container_id=made.id)
    await files.delete(own_file.id, container_id=made.id)
    names = [one.name async for one in client.containers.list(limit=1) if one.id == made.id]
    status = (await client.containers.retrieve(made.id)).status
    await client.containers.delete(made.id)
    missing = await failure(lambda: client.containers.retrieve(made.id))
    return [made.memory_limit, paths, content, [first.bytes, first.source, first.path], names, status, missing]


async def answers(**more: Any) -> Any:
    """Return an answer with each tool."""
    tools = [CODE, await file_tool(), WEB]
    return [await client.responses.create(model=MODEL, input="Hi", tools=[tool], **more) for tool in tools]


async def create() -> Any:
    return [[cited(one), shown(one)] for one in await answers()]


async def stream() -> Any:
    outcomes = []
    for tool in [CODE, await file_tool(), WEB]:
        async with client.responses.stream(model=MODEL, input="Hi", tools=[tool], include=INCLUDE) as events:
            async for _ in events:
                pass
            response = await events.get_final_response()
        stored = await client.responses.retrieve(response.id, include=INCLUDE)
        outcomes.append(
            [cited(response), shown(response), [one.id for one in stored.output] == [one.id for one in response.output]]
        )
    return outcomes


async def figure() -> Any:
    response = await client.responses.create(model=MODEL, input="Plot", tools=[CODE], include=INCLUDE)
    call = response.output[0]
    return [[one.type for one in call.outputs], call.outputs[-1].url[:22]]


async def own_container() -> Any:
    made = await client.containers.create(name="work")
    tool: Any = {"type": "code_interpreter", "container": made.id}
    response = await client.responses.create(model=MODEL, input="Hi", tools=[tool])
    return [response.output_text, response.output[0].container_id == made.id]


async def parse() -> Any:
    response = await client.responses.parse(model=MODEL, input="Who?", tools=[CODE], text_format=Profile, max_tool_calls=2)
    return [response.output_parsed.model_dump(), [item.type for item in response.output]]


async def turns() -> Any:
    tools = [CODE, await file_tool(), WEB]
    first = await client.responses.create(model=MODEL, input="All", tools=tools, store=False, include=INCLUDE)
    back: Any = [{"role": "user", "content": "All"}, *first.output, {"role": "user", "content": "And now?"}]
    second = await client.responses.create(model=MODEL, input=back, tools=tools, store=False)
    dumped: Any = [*[item.model_dump() for item in first.output], {"role": "user", "content": "And now?"}]
    third = await client.responses.create(model=MODEL, input=dumped)
    return [[item.type for item in first.output], second.output_text, third.output_text]


async def cancel() -> Any:
    """Cancel a response whose code runs for ever; then run other code in the same container, which waits for the end of the first."""
    made = await client.responses.create(model=MODEL, input="Loop", tools=[CODE], background=True, stream=True)
    uid = container = ""
    async for event in made:
        uid = uid or event.response.id
        if event.type == "response.output_item.added":
            container = event.item.container_id
        if event.type == "response.code_interpreter_call.interpreting":
            break
    loop = asyncio.get_running_loop()
    start = loop.time()
    cancelled = await client.responses.cancel(uid)
    tool: Any = {"type": "code_interpreter", "container": container}
    after = await client.responses.create(model=MODEL, input="Go on", tools=[tool], include=INCLUDE)
    outputs = [one.logs for one in after.output[0].outputs]
    return [cancelled.status, [item.status for item in cancelled.output], outputs, loop.time() - start < LIMIT_S]


asyncio.run(run_steps(files, vector_stores, containers, create, stream, figure, own_container, parse, turns, cancel))
