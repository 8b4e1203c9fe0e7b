"""Comparison of streams with their replay: each client keeps the id and a hash of its events, and the server must repeat them."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

from bench.support.load import LIMIT_S
from bench.support.stream_client import StreamClient, StreamResult, Target

REPLAYS_AT_A_TIME = 16
_ID = re.compile(rb'"id":\s*"(resp_\w+)"')
_COMMENT = re.compile(rb"^:.*\n\n?", re.MULTILINE)


@dataclass(slots=True)
class SeenStreams:
    """Hashes of streams as their clients saw them, by the id of the response."""

    hashes: dict[str, bytes] = field(default_factory=dict)

    def client(self, request: bytes, done: asyncio.Future[StreamResult]) -> StreamClient:
        """Make a client that adds the hash of its stream."""
        return _HashedStream(request, done, self.hashes)


async def find_different(target: Target, seen: SeenStreams) -> list[str]:
    """Replay each stream. Return the ids of those whose replay has other events, or that cannot be read."""
    ids = iter(list(seen.hashes))
    replays = SeenStreams()
    await asyncio.gather(*(_replay_each(target, ids, replays) for _ in range(REPLAYS_AT_A_TIME)))
    return [one for one, digest in seen.hashes.items() if replays.hashes.get(one) != digest]


class _HashedStream(StreamClient):
    """Streaming client that keeps the whole stream until its end."""

    def __init__(self, request: bytes, done: asyncio.Future[StreamResult], hashes: dict[str, bytes]) -> None:
        super().__init__(request, done)
        self._whole, self._hashes = bytearray(), hashes
        done.add_done_callback(self._keep_hash)

    def data_received(self, data: bytes) -> None:
        """Keep the bytes, and count the events."""
        self._whole += data
        super().data_received(data)

    def _keep_hash(self, done: asyncio.Future[StreamResult]) -> None:
        if not done.cancelled() and done.exception() is None:
            events = _COMMENT.sub(b"", decode_chunks(bytes(self._whole)))
            if match := _ID.search(events):
                self._hashes[match[1].decode()] = hashlib.blake2b(events, digest_size=16).digest()


def decode_chunks(answer: bytes) -> bytes:
    """Return the body of an HTTP response with chunks (RFC 9112, section 7.1)."""
    return b"".join(_chunks(answer, answer.index(b"\r\n\r\n") + 4))


def _chunks(answer: bytes, start: int) -> Iterator[bytes]:
    while True:
        end = answer.index(b"\r\n", start)
        size = int(answer[start:end].split(b";")[0], 16)
        if not size:
            return
        yield answer[end + 2 : end + 2 + size]
        start = end + size + 4


async def _replay_each(target: Target, ids: Iterator[str], replays: SeenStreams) -> None:
    loop = asyncio.get_running_loop()
    for one in ids:
        done: asyncio.Future[StreamResult] = loop.create_future()
        request = target.get(f"/v1/responses/{one}?stream=true")
        try:
            await loop.create_connection(partial(replays.client, request, done), target.host, target.port)
            await asyncio.wait_for(done, LIMIT_S)
        except (OSError, TimeoutError):
            # Its hash is missing, so that it is reported.
            continue
