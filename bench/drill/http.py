"""Requests as a client makes them, and streams read block by block without forgiveness."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx2

from bench.drill.parts import Web

# A stream says something every ten seconds, be it only that it is there; one that stands still for 8 s comes back.
SILENCE_S = 40.0
PAD = b',"obfuscation":"'


class Broken(Exception):
    """The connection broke, or there was none."""


class Silent(Broken):
    """It said nothing for longer than any stream may."""


@dataclass(frozen=True, slots=True)
class Block:
    """One event of a stream: the bytes of its data, without padding. `number` is None for the end mark."""

    name: str
    data: bytes
    number: int | None

    @property
    def terminal(self) -> bool:
        """Whether this ends the response."""
        return self.name in ("response.completed", "response.incomplete", "response.failed")


@dataclass(frozen=True, slots=True)
class Answer:
    """What a plain request was answered."""

    status: int
    body: bytes

    @property
    def json(self) -> Any:
        """Its decoded body."""
        return json.loads(self.body)


class Wire:
    """All requests of the drill; every one on a connection of its own, as there is no telling whether an old one still lives."""

    def __init__(self, key: str) -> None:
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=0)
        self._client = httpx2.AsyncClient(
            headers={"Authorization": f"Bearer {key}", "Accept-Encoding": "identity"},
            timeout=httpx2.Timeout(SILENCE_S, connect=10.0),
            limits=limits,
        )

    async def ask(self, web: Web, method: str, path: str, body: Any = None, patience: float = 120.0) -> Answer:
        """A plain request. Raises Broken."""
        try:
            answer = await self._client.request(
                method, f"{web.url}{path}", json=body, timeout=httpx2.Timeout(patience, connect=10)
            )
        except httpx2.HTTPError as error:
            raise Broken(f"{type(error).__name__} {error}") from error
        return Answer(answer.status_code, answer.content)

    @asynccontextmanager
    async def stream(self, web: Web, method: str, path: str, body: Any = None) -> AsyncIterator[Stream]:
        """A request whose answer is read as it comes. Raises Broken."""
        try:
            async with self._client.stream(method, f"{web.url}{path}", json=body) as response:
                yield Stream(response)
        except httpx2.ReadTimeout as error:
            raise Silent(f"{web.name} has said nothing for {SILENCE_S:.0f} s") from error
        except httpx2.HTTPError as error:
            raise Broken(f"{type(error).__name__} {error}") from error

    async def close(self) -> None:
        """Hang up."""
        await self._client.aclose()


class Stream:
    """The answer to a request for a stream, which may be a refusal."""

    def __init__(self, response: httpx2.Response) -> None:
        self.status = response.status_code
        self._response = response

    async def refusal(self) -> Answer:
        """What was said instead of a stream."""
        return Answer(self.status, await self._response.aread())

    async def blocks(self) -> AsyncGenerator[Block, None]:
        """Its events, and its end mark. Raises ValueError for what is no event."""
        rest = b""
        async for data in self._response.aiter_raw():
            *whole, rest = (rest + data).split(b"\n\n")
            for text in whole:
                if not text.startswith(b":"):
                    yield block(text)
        if rest:
            raise ValueError(f"the stream ended within a block: {rest[:100]!r}")


def block(text: bytes) -> Block:
    """One block between two blank lines."""
    if text == b"data: [DONE]":
        return Block("", b"", None)
    name, newline, data = text.partition(b"\ndata: ")
    if not newline or not name.startswith(b"event: ") or b"\n" in data:
        raise ValueError(f"no event: {text[:100]!r}")
    at = data.rfind(PAD)
    data = data if at < 0 else data[:at] + b"}"
    return Block(name[7:].decode(), data, json.loads(data)["sequence_number"])


async def patiently(seconds: float = 0.3) -> None:
    """The pause before somebody tries again."""
    await asyncio.sleep(seconds)
