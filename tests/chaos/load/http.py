"""Requests as a client makes them, and streams read block by block without forgiveness."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx2

from tests.chaos.system.processes import WebProcess
from tests.chaos.waits import pause
from tests.support import plain_http

# A stream says something every ten seconds, be it only that it is there; one that stands still for 8 s comes back.
SILENCE_S = 40.0
PAD = b',"obfuscation":"'


class ConnectionBroken(Exception):
    """Connection error: the connection broke or could not be opened."""


class StreamSilent(ConnectionBroken):
    """Timeout: the stream sent neither an event nor a comment for SILENCE_S."""


@dataclass(frozen=True, slots=True)
class ReceivedBlock:
    """Event of a stream, with the data's bytes without padding. `number` is None for `[DONE]`."""

    name: str
    data: bytes
    number: int | None

    @property
    def terminal(self) -> bool:
        """Return whether the event ends the response."""
        return self.name in ("response.completed", "response.incomplete", "response.failed")


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """Answer to a plain request."""

    status: int
    body: bytes

    @property
    def json(self) -> Any:
        """Decode the body."""
        return json.loads(self.body)


class HttpClient:
    """HTTP client of the chaos test; each request opens a separate connection, since an older one may be dead."""

    def __init__(self, key: str) -> None:
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=0)
        self._client = plain_http.async_client(
            headers={"Authorization": f"Bearer {key}", "Accept-Encoding": "identity"},
            timeout=httpx2.Timeout(SILENCE_S, connect=10.0),
            limits=limits,
        )

    async def request(self, web: WebProcess, method: str, path: str, body: Any = None, patience: float = 120.0) -> HttpAnswer:
        """Send a plain request. Raises ConnectionBroken."""
        try:
            answer = await self._client.request(
                method, f"{web.url}{path}", json=body, timeout=httpx2.Timeout(patience, connect=10)
            )
        except httpx2.HTTPError as error:
            raise ConnectionBroken(f"{type(error).__name__} {error}") from error
        return HttpAnswer(answer.status_code, answer.content)

    @asynccontextmanager
    async def stream(self, web: WebProcess, method: str, path: str, body: Any = None) -> AsyncIterator[ChaosStream]:
        """Send a request whose answer is read as a stream. Raises ConnectionBroken."""
        try:
            async with self._client.stream(method, f"{web.url}{path}", json=body) as response:
                yield ChaosStream(response)
        except httpx2.ReadTimeout as error:
            raise StreamSilent(f"{web.name} sent nothing for {SILENCE_S:.0f} s") from error
        except httpx2.HTTPError as error:
            raise ConnectionBroken(f"{type(error).__name__} {error}") from error

    async def close(self) -> None:
        """Close the client."""
        await self._client.aclose()


class ChaosStream:
    """Answer to a request for a stream; the answer may be a refusal."""

    def __init__(self, response: httpx2.Response) -> None:
        self.status = response.status_code
        self._response = response

    async def refusal(self) -> HttpAnswer:
        """Read the body of a refusal."""
        return HttpAnswer(self.status, await self._response.aread())

    async def blocks(self) -> AsyncGenerator[ReceivedBlock, None]:
        """Yield the events and the end mark. Raises ValueError for bytes that are no event."""
        incomplete_block = b""
        async for data in self._response.aiter_raw():
            *whole, incomplete_block = (incomplete_block + data).split(b"\n\n")
            for text in whole:
                if not text.startswith(b":"):
                    yield block(text)
        if incomplete_block:
            raise ValueError(f"the stream ended within a block: {incomplete_block[:100]!r}")


def block(text: bytes) -> ReceivedBlock:
    """Parse a block between two blank lines."""
    if text == b"data: [DONE]":
        return ReceivedBlock("", b"", None)
    name, newline, data = text.partition(b"\ndata: ")
    if not newline or not name.startswith(b"event: ") or b"\n" in data:
        raise ValueError(f"no event: {text[:100]!r}")
    at = data.rfind(PAD)
    data = data if at < 0 else data[:at] + b"}"
    return ReceivedBlock(name[7:].decode(), data, json.loads(data)["sequence_number"])


async def pause_before_retry(seconds: float = 0.3) -> None:
    """Pause before the next attempt."""
    await pause(seconds)
