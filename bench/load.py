"""A load of streaming requests from one cheap client, and what it felt: tokens per second and time to first token."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass

TERMINALS = (b"event: response.completed", b"event: response.incomplete", b"event: response.failed")
LIMIT = 300.0


@dataclass(frozen=True, slots=True)
class Target:
    """A Responses endpoint."""

    host: str
    port: int
    model: str
    key: str = "none"


@dataclass(frozen=True, slots=True)
class Felt:
    """One request: seconds to the first token, seconds in all, tokens generated, status."""

    first: float
    total: float
    tokens: int
    status: str


@dataclass(frozen=True, slots=True)
class Round:
    """All requests of one round, and its length in seconds."""

    felt: list[Felt]
    seconds: float

    @property
    def tokens(self) -> int:
        """Tokens generated."""
        return sum(one.tokens for one in self.felt)

    @property
    def rate(self) -> float:
        """Tokens per second over all streams."""
        return self.tokens / self.seconds

    def first(self, share: float) -> float:
        """A quantile of the time to the first token, in seconds."""
        ordered = sorted(one.first for one in self.felt)
        return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


async def load(target: Target, streams: int, requests: int, tokens: int, **fields: object) -> Round:
    """`requests` requests, `streams` of them at a time, each for up to `tokens` tokens. Raises RuntimeError if one fails."""
    queue = iter(range(requests))

    async def worker() -> list[Felt]:
        return [await _ask(target, number, tokens, fields) for number in queue]

    began = time.perf_counter()
    felt = [one for some in await asyncio.gather(*(worker() for _ in range(streams))) for one in some]
    return Round(felt, time.perf_counter() - began)


async def _ask(target: Target, number: int, tokens: int, fields: dict[str, object]) -> Felt:
    # Each request has another beginning, so that the prefix cache does not answer for the prefill.
    body = {
        "model": target.model,
        "input": f"Tell me a long story about a dragon number {number}.",
        "stream": True,
        "temperature": 0,
        "max_output_tokens": tokens,
        **fields,
    }
    data = json.dumps(body).encode()
    head = (
        f"POST /v1/responses HTTP/1.1\r\nHost: {target.host}:{target.port}\r\nAuthorization: Bearer {target.key}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\nConnection: close\r\n\r\n"
    )
    began = time.perf_counter()
    reader, writer = await asyncio.open_connection(target.host, target.port, limit=2**24)
    try:
        writer.write(head.encode() + data)
        return await asyncio.wait_for(_listen(reader, began), LIMIT)
    finally:
        writer.close()


async def _listen(reader: asyncio.StreamReader, began: float) -> Felt:
    first, terminal = 0.0, False
    status = await reader.readline()
    if b" 200" not in status:
        raise RuntimeError(f"{status!r} {await reader.read()!r}")
    async for line in reader:
        if not first and line.startswith(b"event: ") and line.rstrip().endswith(b".delta"):
            first = time.perf_counter() - began
        elif terminal and line.startswith(b"data: "):
            response = json.loads(line[6:])["response"]
            return Felt(first, time.perf_counter() - began, response["usage"]["output_tokens"], response["status"])
        elif line.startswith(TERMINALS):
            terminal = True
    raise RuntimeError("the stream ended without a terminal event")
