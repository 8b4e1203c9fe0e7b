"""Target of an attack: the server, the model, the attacker's API key, and requests to it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

READY = "ready"
BOUNDARY = "neighbors"


@dataclass(frozen=True, slots=True)
class MeasuredTarget:
    """Server under attack, served model, and the attacker's API key."""

    port: int
    model: str
    key: str

    def ready(self) -> None:
        """Tell the benchmark that the attack begins."""
        print(READY, flush=True)


Attack = Callable[[MeasuredTarget], Awaitable[None]]


async def post(
    target: MeasuredTarget,
    body: bytes,
    path: str = "/v1/responses",
    limit_s: float = 60.0,
    key: str | None = None,
    content_type: str = "application/json",
) -> bytes:
    """Send a request and return the answer with its head, read for `limit_s` seconds at most; then hang up."""
    secret = target.key if key is None else key
    authorization = f"Authorization: Bearer {secret}\r\n" if secret else ""
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{target.port}\r\n{authorization}Content-Type: {content_type}\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    writer, answer = None, bytearray()
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(limit_s):
            reader, writer = await asyncio.open_connection("127.0.0.1", target.port)
            writer.write(head.encode() + body)
            await writer.drain()
            while data := await reader.read(65536):
                answer += data
    if writer is not None:
        writer.close()
    return bytes(answer)


async def call(target: MeasuredTarget, path: str, **body: Any) -> dict[str, Any]:
    """Send a request with a JSON body and return the object of the answer."""
    answer = await post(target, json.dumps(body).encode(), path)
    return _parse(answer)


def upload(data: bytes, filename: str) -> bytes:
    """Return the form of an upload."""
    head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nassistants\r\n'
    part = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="{filename}"\r\n\r\n'
    return f"{head}{part}".encode() + data + f"\r\n--{BOUNDARY}--\r\n".encode()


async def add_file(target: MeasuredTarget, data: bytes, filename: str) -> str:
    """Upload a file and return the id."""
    answer = await post(target, upload(data, filename), "/v1/files", content_type=FORM)
    return str(_parse(answer)["id"])


def _parse(answer: bytes) -> dict[str, Any]:
    """Return the object of an answer. Raises RuntimeError for an answer that is not a success."""
    head, _, body = answer.partition(b"\r\n\r\n")
    if b" 200 " not in head.partition(b"\r\n")[0]:
        raise RuntimeError(f"not a success: {answer[:1000]!r}")
    # The body is one chunk between its length and the last chunk (RFC 9112 section 7.1).
    message: dict[str, Any] = json.loads(body[body.index(b"{") : body.rindex(b"}") + 1])
    return message


FORM = f"multipart/form-data; boundary={BOUNDARY}"
