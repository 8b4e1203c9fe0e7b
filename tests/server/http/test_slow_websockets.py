"""Harmful WebSocket clients: floods, single bytes, silence. Their costs are limited, and other clients are served as usual."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import suppress

import pytest
from websockets.exceptions import ConnectionClosedError
from websockets.sync.client import connect

from responses_app.server.http.errors import BODY_LIMIT
from responses_app.server.http.websocket import MAX_WAITING_BYTES
from tests.support.server.echo_process import Echo
from tests.support.server.slow_clients import (
    LIMIT,
    close_all,
    gone,
    pause_client,
    trickle,
    wait_until_only_ours,
    wait_until_read,
)
from tests.support.waiting import wait_until

PING_S = 0.5
HEAD = "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
KEY = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
# Masks of zeros, so that what is sent reads as it is (RFC 6455 §5.2).
MASK = b"\0\0\0\0"


@pytest.fixture(scope="module")
def strict() -> Iterator[Echo]:
    echo = Echo(BODY_GRACE=LIMIT, STALL_LIMIT=LIMIT, ping_interval_s=PING_S, PING_LIMIT=LIMIT)
    yield echo
    echo.end()


@pytest.fixture(scope="module")
def slow_echo() -> Iterator[Echo]:
    """A server with the limits of production."""
    echo = Echo()
    yield echo
    echo.end()


def call(echo: Echo) -> socket.socket:
    client = socket.create_connection(("127.0.0.1", echo.port))
    client.sendall((HEAD + KEY).encode())
    assert b"101" in client.recv(4096)
    return client


def frame(text: bytes) -> bytes:
    """A whole text message of up to 64 KiB."""
    size = bytes([0x80 | len(text)]) if len(text) < 126 else b"\xfe" + len(text).to_bytes(2, "big")
    return b"\x81" + size + MASK + text


def test_client_that_sends_too_much_waits_and_loses_nothing(slow_echo: Echo) -> None:
    before = slow_echo.get("/state")["memory"]
    message, sent = frame(b"x" * 60_000), 0
    unsent = memoryview(message)
    with call(slow_echo) as client:
        client.sendall(frame(b"busy"))
        wait_until(lambda: slow_echo.get("/state")["busy"] == 1)
        client.settimeout(0.5)
        try:
            while sent < 20_000:
                unsent = unsent[client.send(unsent) :] or memoryview(message)
                sent += len(unsent) == len(message)
        except TimeoutError:
            pass
        assert sent * len(message) < MAX_WAITING_BYTES + 16 * 1024 * 1024, "reading has stopped"
        assert slow_echo.get("/state")["memory"] - before < 64 * 1024
        slow_echo.get("/release")
        client.settimeout(10)
        # The rest of the message that was cut.
        client.sendall(unsent)
        received = b""
        while received.count(b"60000") < sent + 1:
            received += client.recv(2**20)


def test_many_small_frames_are_all_answered(strict: Echo) -> None:
    with connect(f"ws://127.0.0.1:{strict.port}/") as client:
        for _ in range(3000):
            client.send("x")
        assert [client.recv(10) for _ in range(3000)] == ["1"] * 3000


def test_client_that_sends_a_message_byte_by_byte_is_cut() -> None:
    echo = Echo(BODY_GRACE=LIMIT)
    try:
        with call(echo) as client:
            client.sendall(b"\x81\xfe" + (60_000).to_bytes(2, "big") + MASK)
            trickle(client)
    finally:
        echo.end()


def test_client_without_pongs_is_cut_and_a_client_with_pongs_is_not(strict: Echo) -> None:
    with connect(f"ws://127.0.0.1:{strict.port}/") as alive, call(strict) as dead:
        assert wait_until(lambda: gone(dead)) > LIMIT - 1
        pause_client(LIMIT)
        alive.send("still here")
        assert alive.recv(60) == "10"


def test_pings_are_answered_while_the_application_is_busy(strict: Echo) -> None:
    with connect(f"ws://127.0.0.1:{strict.port}/") as client:
        client.send("busy")
        wait_until(lambda: strict.get("/state")["busy"] == 1)
        assert client.ping().wait(60)
        strict.get("/release")
        assert client.recv(10) == "4"


def test_client_that_never_reads_is_cut(strict: Echo) -> None:
    with call(strict) as client:
        client.sendall(frame(b"flood"))
        wait_until_only_ours(strict)


@pytest.mark.parametrize("fragments", [1, 3, 1000])
def test_message_over_the_limit_closes_with_1009(slow_echo: Echo, fragments: int) -> None:
    size = BODY_LIMIT + 1000
    with connect(f"ws://127.0.0.1:{slow_echo.port}/", ping_interval=None) as client:
        with suppress(ConnectionClosedError):
            client.send("x" * size if fragments == 1 else ["x" * (size // fragments + 1)] * fragments)
        with pytest.raises(ConnectionClosedError) as closed:
            client.recv(30)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1009
        assert "64 MiB" in closed.value.rcvd.reason
    wait_until_only_ours(slow_echo)


@pytest.mark.parametrize("fragments", [1, 3])
def test_message_of_exactly_the_limit_is_accepted(slow_echo: Echo, fragments: int) -> None:
    with connect(f"ws://127.0.0.1:{slow_echo.port}/", ping_interval=None) as client:
        last_length = BODY_LIMIT - BODY_LIMIT // 3 * 3
        client.send("x" * BODY_LIMIT if fragments == 1 else [*["x" * (BODY_LIMIT // 3)] * 3, "x" * last_length])
        assert client.recv(30) == str(BODY_LIMIT)


@pytest.mark.parametrize("reset", [False, True])
def test_disconnected_clients_leave_nothing(strict: Echo, reset: bool) -> None:
    texts = [b"", frame(b"flood"), frame(b"busy"), frame(b"x" * 1000)[:500]]
    clients = [call(strict) for _ in range(5 * len(texts))]
    for number, client in enumerate(clients):
        client.sendall(texts[number % len(texts)])
    wait_until_read(strict, len(clients))
    wait_until(lambda: strict.get("/state")["busy"] == 5)
    close_all(clients, reset)
    strict.get("/release")
    wait_until_only_ours(strict)
