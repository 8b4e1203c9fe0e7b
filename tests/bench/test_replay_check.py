"""Hashes of streams: the same for the same events, however the server cuts them and whatever comments stand between them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from bench.support.replay_check import SeenStreams
from bench.support.stream_client import StreamResult

CREATED = b'event: response.created\ndata: {"id": "resp_1"}\n\n'
DELTA = b'event: response.output_text.delta\ndata: {"delta": "a"}\n\n'
END = b'event: response.completed\ndata: {"response": {"usage": {"output_tokens": 1}}}\n\n'


class _Transport(asyncio.Transport):
    """Transport that drops what is written."""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        pass

    def close(self) -> None:
        pass


async def hashed(chunks: Sequence[bytes]) -> dict[str, bytes]:
    """Return the hashes after a stream in these chunks."""
    seen = SeenStreams()
    done: asyncio.Future[StreamResult] = asyncio.get_running_loop().create_future()
    client = seen.client(b"request", done)
    client.connection_made(_Transport())
    body = b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks)
    asyncio.get_running_loop().call_soon(client.data_received, b"HTTP/1.1 200 OK\r\n\r\n" + body + b"0\r\n\r\n")
    await done
    return seen.hashes


@pytest.mark.parametrize(
    ("chunks", "is_same"),
    [
        ((CREATED + DELTA + END,), True),
        ((CREATED, b": heartbeat\n\n", DELTA, END), True),
        ((CREATED, DELTA, DELTA, END), False),
        ((CREATED, DELTA.replace(b"a", b"b"), END), False),
    ],
)
def test_hash_depends_on_the_events_alone(chunks: Sequence[bytes], is_same: bool) -> None:
    first, other = asyncio.run(hashed((CREATED, DELTA, END))), asyncio.run(hashed(chunks))
    assert list(first) == list(other) == ["resp_1"]
    assert (first == other) == is_same
