"""Writes of a connection: in order and few, for every amount that the kernel accepts; writes of the application without messages."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.sync.client import connect

from responses_app.server.http.write_coalescing import HELD, CoalescingConnection
from tests.support import plain_http
from tests.support.server.echo_process import Echo
from tests.support.server.slow_clients import stable_value, wait_until_only_ours
from tests.support.waiting import run_ready_tasks, wait_until

# More pieces of 8 KiB than the buffers of a connection hold.
MANY = 2000

# What happens to a connection: bytes are written, alone or in parts, or a turn of the loop ends.
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.binary(min_size=1, max_size=40)),
        st.tuples(st.just("put"), st.integers(HELD // 2, HELD + 1).map(bytes)),
        st.tuples(st.just("sequence"), st.binary(min_size=1, max_size=40)),
        st.tuples(st.just("turn"), st.just(b"")),
    ),
    max_size=12,
)


class Wire(CoalescingConnection):
    """A connection whose kernel takes `room` bytes in all; the rest stays in Twisted's buffer."""

    def __init__(self, room: int) -> None:
        self.connected, self.disconnecting, self.offset, self._tempDataLen = 1, False, 0, 0
        self.dataBuffer = b""
        self._tempDataBuffer: list[bytes] = []
        self._held, self._held_size, self._loop = [], 0, asyncio.get_running_loop()
        self.room, self.sent, self.calls = room, b"", 0

    def writeSomeData(self, data: Any) -> int:
        self.calls += 1
        some = bytes(data[: self.room])
        self.room -= len(some)
        self.sent += some
        return len(some)

    def startWriting(self) -> None:
        pass

    @property
    def whole(self) -> bytes:
        """Return all written and waiting bytes in order."""
        buffered: bytes = self.dataBuffer[self.offset :] + b"".join(self._tempDataBuffer)
        return self.sent + buffered + b"".join(self._held)


@given(STEPS, st.sampled_from([0, 7, 100, HELD, 10**9]))
def test_everything_leaves_in_order_and_nothing_twice(steps: list[tuple[str, bytes]], room: int) -> None:
    async def act() -> None:
        wire, given_ = Wire(room), b""
        for what, data in steps:
            if what == "put":
                wire.write(data)
            elif what == "sequence":
                wire.writeSequence([data[:1], data[1:]])
            else:
                await run_ready_tasks()
            given_ += data
            assert wire.whole == given_
            assert wire.pending == len(given_) - len(wire.sent)
        await run_ready_tasks()
        assert not wire._held
        assert wire.whole == given_

    asyncio.run(act())


def test_data_of_one_turn_is_one_write() -> None:
    async def act() -> None:
        wire = Wire(10**9)
        for _ in range(3):
            for part in (b"one", b"two", b"three"):
                wire.write(part)
            await run_ready_tasks()
        assert (wire.calls, wire.sent) == (3, b"onetwothree" * 3)

    asyncio.run(act())


def test_no_more_is_held_than_the_limit() -> None:
    async def act() -> None:
        wire = Wire(10**9)
        for _ in range(100):
            wire.write(bytes(HELD // 10))
            assert wire._held_size <= HELD
        assert wire.sent

    asyncio.run(act())


@pytest.fixture(scope="module")
def echo() -> Iterator[Echo]:
    echo = Echo(SEND_BUFFER=64 * 1024)
    yield echo
    echo.end()


def request(count: int, version: str = "1.1", method: str = "GET") -> bytes:
    return f"{method} /push?{count} HTTP/{version}\r\nHost: x\r\n\r\n".encode()


def read_end(client: socket.socket) -> bytes:
    """Read until the server closes the connection."""
    received = b""
    while data := client.recv(2**20):
        received += data
    return received


def numbers(body: bytes) -> list[int]:
    """Return the numbers of the pieces of a body that is complete."""
    begin, *pieces, end = body.splitlines()
    assert (begin, end) == (b"begin", b"end")
    return [int(piece[-9:]) for piece in pieces]


def test_pieces_arrive_in_order_and_the_connection_is_kept(echo: Echo) -> None:
    with plain_http.client() as client:
        for count in (0, 1, 5):
            answer = client.get(f"http://127.0.0.1:{echo.port}/push?{count}", timeout=60)
            assert answer.headers["transfer-encoding"] == "chunked"
            assert numbers(answer.content) == list(range(count))
            assert client.get(f"http://127.0.0.1:{echo.port}/state", timeout=60).json()["direct"] == count


def test_http_1_0_gets_bare_bytes_and_a_close(echo: Echo) -> None:
    with socket.create_connection(("127.0.0.1", echo.port), timeout=60) as client:
        client.sendall(request(3, "1.0"))
        head, body = read_end(client).split(b"\r\n\r\n", 1)
    assert b"chunked" not in head.lower()
    assert numbers(body) == [0, 1, 2]
    assert echo.get("/state")["direct"] == 3


def test_answer_to_head_has_no_body(echo: Echo) -> None:
    with socket.create_connection(("127.0.0.1", echo.port), timeout=60) as client:
        client.sendall(request(3, method="HEAD") + request(0, "1.0"))
        _, body = read_end(client).split(b"\r\n\r\n", 1)
    assert body == b"HTTP/1.0 200 OK\r\n\r\nbegin\nend\n"


def test_client_that_does_not_read_delays_its_own_stream_and_then_gets_all(echo: Echo) -> None:
    with socket.create_connection(("127.0.0.1", echo.port), timeout=60) as client:
        client.sendall(request(MANY, "1.0"))
        waiting = stable_value(lambda: echo.get("/state")["pieces"])
        assert 0 < waiting < MANY / 2
        assert echo.get("/state")["paused"] == 1
        _, body = read_end(client).split(b"\r\n\r\n", 1)
    assert numbers(body) == list(range(MANY))
    assert waiting < echo.get("/state")["direct"] < MANY, "both ways were used"


@pytest.mark.parametrize("read", [0, 1, 100_000])
def test_client_that_disconnects_at_any_moment_is_forgotten(echo: Echo, read: int) -> None:
    with socket.create_connection(("127.0.0.1", echo.port), timeout=60) as client:
        client.sendall(request(MANY))
        wait_until(lambda: echo.get("/state")["pieces"])
        while read > 0:
            read -= len(client.recv(read))
    wait_until_only_ours(echo)


def test_messages_of_a_websocket_stay_whole_and_in_order(echo: Echo) -> None:
    with connect(f"ws://127.0.0.1:{echo.port}/", max_size=None) as client:
        client.send("push")
        assert [client.recv(20) for _ in range(4)] == ["one", "x" * 200, "x" * 70_000, "4"]
