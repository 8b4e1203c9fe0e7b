"""Attacks by files, containers, vector stores, code and MCP servers. Each one prepares what it needs and says that it is ready."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
from collections.abc import Awaitable, Callable

from bench.noisy_neighbors import payloads
from bench.noisy_neighbors.target import FORM, Attack, MeasuredTarget, add_file, call, post, upload
from tests.support.mcp.raw_server import raw_mcp_server, reply

PARALLEL = 12
UPLOAD_BYTES = 2**20
STORE_WORDS = 200_000
QUERY_WORDS = 90
RUNS = 16
PDF_PAGES = 1500
SLEEP_CODE = "import time\ntime.sleep(20)"
# Words of a request that let the model of the recording run the code.
SLEEP_WORDS = " sleep"
BURN_CODE = "import os\nfor _ in range(4): os.fork()\nwhile True: pass"
BURN_WORDS = " burn"


async def containers(target: MeasuredTarget) -> None:
    """Create containers."""
    target.ready()
    await _repeat(lambda _: post(target, b'{"name": "c"}', "/v1/containers"))


async def uploads(target: MeasuredTarget) -> None:
    """Upload files of 1 MiB."""
    form = upload(bytes(UPLOAD_BYTES), "zeros.txt")
    target.ready()
    await _repeat(lambda _: post(target, form, "/v1/files", content_type=FORM))


async def searches(target: MeasuredTarget) -> None:
    """Search a vector store with long queries."""
    words = [f"{first}{second}{third}" for first, second, third in itertools.product("bdfglmnprst", "aeiou", "nrlst")]
    source = random.Random(1)
    text = " ".join(source.choices(words, k=STORE_WORDS))
    file_id = await add_file(target, text.encode(), "words.txt")
    store = await call(target, "/v1/vector_stores", name="words", file_ids=[file_id])
    path = f"/v1/vector_stores/{store['id']}"
    while not (await call(target, f"{path}/search", query=words[0]))["data"]:
        await asyncio.sleep(0.2)
    query = {"query": " ".join(source.sample(words, QUERY_WORDS)), "max_num_results": 50}
    body = json.dumps(query).encode()
    target.ready()
    await _repeat(lambda _: post(target, body, f"{path}/search"))


async def sleeping_code(target: MeasuredTarget) -> None:
    """Run code that sleeps, in more containers than a project may use."""
    await _run_code(target, SLEEP_WORDS)


async def burning_code(target: MeasuredTarget) -> None:
    """Run code whose sixteen processes compute without an end, in more containers than a project may use."""
    await _run_code(target, BURN_WORDS)


async def mcp_sessions(target: MeasuredTarget) -> None:
    """Open sessions with MCP servers. The address is new each time, so that no list of tools is known."""
    async with raw_mcp_server(reply(result={})) as server:
        target.ready()
        await _repeat(lambda number: post(target, payloads.mcp(target.model, server.url(f"/mcp/{number}"))))


async def slow_pdfs(target: MeasuredTarget) -> None:
    """Add PDFs to a vector store that take long to read."""
    form = payloads.slow_pdf(PDF_PAGES)
    store = await call(target, "/v1/vector_stores", name="slow")
    files = [await add_file(target, form + b"%%%d" % number, f"{number}.pdf") for number in range(8)]
    target.ready()
    await call(target, f"/v1/vector_stores/{store['id']}/file_batches", file_ids=files)
    await asyncio.Event().wait()


async def _run_code(target: MeasuredTarget, words: str) -> None:
    body = payloads.create(target.model, input=f"Please{words}", tools=[payloads.CODE])
    target.ready()
    await _repeat(lambda _: post(target, body, limit_s=600.0), RUNS)


async def _repeat(request: Callable[[int], Awaitable[object]], parallel: int = PARALLEL) -> None:
    """Send numbered requests, `parallel` at a time, in sequence."""
    numbers = itertools.count()

    async def worker() -> None:
        for number in numbers:
            await request(number)

    await asyncio.gather(*(worker() for _ in range(parallel)))


TOOL_ATTACKS: dict[str, Attack] = {
    "containers": containers,
    "uploads": uploads,
    "vector-store-searches": searches,
    "sleeping-code": sleeping_code,
    "burning-code": burning_code,
    "mcp-sessions": mcp_sessions,
    "slow-pdfs": slow_pdfs,
}
