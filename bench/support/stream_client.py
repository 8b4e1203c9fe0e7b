"""Client of streaming requests that counts events without parsing them: the client shares the cores with the servers."""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from dataclasses import dataclass, field
from typing import cast

from bench.support.api_streams import RESPONSES, ApiStream

# End of an HTTP response with chunks. A chunk of events ends with an empty line, so that no other read ends with these bytes.
LAST_CHUNK = b"0\r\n\r\n"
# The terminal event stands in the last reads, each of up to 256 KiB.
KEPT_READS = 64


@dataclass(frozen=True, slots=True)
class Target:
    """Endpoint of an API format."""

    host: str
    port: int
    model: str
    key: str = "none"
    api: ApiStream = RESPONSES

    def request(self, **fields: object) -> bytes:
        """Encode the HTTP request of a streaming response with `fields`, named as in Responses."""
        body = json.dumps({"model": self.model, "stream": True, **self.api.body(fields)}).encode()
        head = (
            f"POST {self.api.path} HTTP/1.1\r\nHost: {self.host}:{self.port}\r\nAuthorization: Bearer {self.key}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        return head.encode() + body

    def get(self, path: str) -> bytes:
        """Encode an HTTP request for `path`."""
        head = f"GET {path} HTTP/1.1\r\nHost: {self.host}:{self.port}\r\nAuthorization: Bearer {self.key}\r\nConnection: close\r\n\r\n"
        return head.encode()


@dataclass(slots=True)
class StreamResult:
    """A stream: events, deltas, tokens by `usage`, and monotonic times in seconds.

    `opened` is the time of the first event, `times` are those of the reads with deltas. `visible` is the time of the first text
    outside the reasoning, None without any.
    """

    began: float
    connected: float = 0.0
    opened: float = 0.0
    ended: float = 0.0
    events: int = 0
    deltas: int = 0
    tokens: int = 0
    status: str = ""
    times: list[float] = field(default_factory=list)
    visible: float | None = None


class StreamClient(asyncio.Protocol):
    """HTTP client of a streaming request."""

    def __init__(self, request: bytes, done: asyncio.Future[StreamResult], api: ApiStream = RESPONSES) -> None:
        self._request, self._done, self._api = request, done, api
        self._result, self._tail = StreamResult(time.perf_counter()), b""
        self._reads: deque[bytes] = deque(maxlen=KEPT_READS)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the request."""
        # The transport of uvloop is no subclass of the transport of asyncio.
        self._transport = cast("asyncio.Transport", transport)
        self._result.connected = time.perf_counter()
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        """Count the events whose first line is complete."""
        text, result = self._tail + data, self._result
        end = text.rfind(b"\n") + 1
        self._tail = text[end:]
        if not result.events:
            result.opened = time.perf_counter()
        result.events += text.count(self._api.event, 0, end)
        if deltas := sum(text.count(mark, 0, end) for mark in self._api.deltas):
            result.deltas += deltas
            result.times.append(time.perf_counter())
            if result.visible is None and any(text.count(mark, 0, end) for mark in self._api.texts):
                result.visible = result.times[-1]
        self._reads.append(data)
        if data.endswith(LAST_CHUNK) or (len(data) < len(LAST_CHUNK) and b"".join(self._reads).endswith(LAST_CHUNK)):
            self._end()

    def connection_lost(self, error: Exception | None) -> None:
        """Fail unless the stream has ended."""
        if error and not self._done.done():
            self._done.set_exception(error)
        elif not self._done.done():
            self._end()

    def _end(self) -> None:
        text, result = b"".join(self._reads), self._result
        self._transport.close()
        if self._done.done():
            return
        statuses, tokens = self._api.terminal.findall(text), self._api.tokens.findall(text)
        if not statuses or not tokens:
            self._done.set_exception(ConnectionError(f"the stream ended without a terminal event: {text[-500:]!r}"))
            return
        result.ended, result.status, result.tokens = time.perf_counter(), statuses[-1].decode(), int(tokens[-1])
        self._done.set_result(result)
