"""Clients that hurt: silent, slow, gone. What each costs is bounded, and nobody else notices."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack

import httpx2
import pytest

from tests.support.server.echo_process import Echo
from tests.support.server.slow_clients import LIMIT, SLACK, gone, only_ours, seconds_until, trickle

MEGABYTE = 1024
RATES = {"HEAD_LIMIT": LIMIT, "IDLE_LIMIT": LIMIT, "BODY_GRACE": LIMIT, "STALL_LIMIT": LIMIT}


@pytest.fixture(scope="module")
def strict() -> Iterator[Echo]:
    """A door with short limits."""
    echo = Echo(**RATES)
    yield echo
    echo.end()


def call(echo: Echo, text: str = "") -> socket.socket:
    client = socket.create_connection(("127.0.0.1", echo.port))
    client.sendall(text.encode())
    return client


def ask(path: str) -> str:
    return f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n"


def test_two_hundred_that_never_ask_are_cut_and_one_that_waits_for_its_answer_is_not(strict: Echo) -> None:
    with ExitStack() as stack:
        waiting = stack.enter_context(call(strict, ask("/wait")))
        idle = [stack.enter_context(call(strict)) for _ in range(200)]
        assert strict.get("/state")["connections"] > 200
        assert seconds_until(lambda: all(map(gone, idle))) > LIMIT - 1
        assert not gone(waiting)


def test_one_that_is_idle_after_an_answer_is_cut_later(strict: Echo) -> None:
    with call(strict) as client:
        for _ in range(3):
            client.sendall(ask("/made").encode())
            assert b"200 OK" in client.recv(4096)
            time.sleep(LIMIT * 0.6)
            assert not gone(client), "a request now and then keeps it"
            client.setblocking(True)
        seconds_until(lambda: gone(client))


@pytest.mark.parametrize("begin", ["", "G", "GET / HTTP/1.1\r\nHost: x\r\n", "GET / HTTP/1.1\r\nHost: x\r\nX-Long: "])
def test_one_that_sends_its_head_byte_by_byte_is_cut(strict: Echo, begin: str) -> None:
    with call(strict, begin) as client:
        trickle(client, b"x", 0.1)


def test_one_that_sends_its_body_byte_by_byte_is_cut(strict: Echo) -> None:
    with call(strict, "POST /length HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n") as client:
        trickle(client, b"x", 0.1)


def test_one_that_sends_its_body_in_its_own_time_is_heard(strict: Echo) -> None:
    pieces = 24

    def slowly() -> Iterator[bytes]:
        for _ in range(pieces):
            yield bytes(4096)
            time.sleep(2.5 * LIMIT / pieces)

    answer = httpx2.post(f"http://127.0.0.1:{strict.port}/length", content=slowly(), timeout=60)
    assert answer.json() == {"length": pieces * 4096}


@pytest.mark.parametrize("path", ["/flood", "/large"])
def test_many_that_never_read_cost_little_slow_nobody_and_are_cut(path: str) -> None:
    count = 60 if path == "/flood" else 3
    echo = Echo(**RATES)
    try:
        before = echo.get("/state")["memory"]
        with ExitStack() as stack:
            deaf = [stack.enter_context(call(echo, ask(path))) for _ in range(count)]
            time.sleep(1)
            began = time.monotonic()
            assert httpx2.get(f"http://127.0.0.1:{echo.port}/slow", timeout=20).text.endswith("end\n")
            assert time.monotonic() - began < 1 + 3, "a stream of one second takes about one second"
            held = echo.get("/state")
            if path == "/flood":
                # 64 KiB in front of each, and one message; without back-pressure it is a gigabyte for each.
                assert held["memory"] - before < count * MEGABYTE
            seconds_until(lambda: only_ours(echo))
            assert all(map(gone, deaf))
        assert echo.get("/state")["memory"] - before < 40 * MEGABYTE
    finally:
        echo.end()


def test_one_that_reads_a_byte_now_and_then_is_cut_and_one_that_reads_slowly_is_not(strict: Echo) -> None:
    with call(strict, ask("/flood")) as crumbs, call(strict, ask("/flood")) as sips:
        began = time.monotonic()
        while strict.get("/state")["connections"] > 2:  # We that ask, and the one that reads slowly.
            assert time.monotonic() - began < LIMIT + SLACK
            assert sips.recv(64 * 1024)
            assert crumbs.recv(1)
            time.sleep(0.1)
        assert time.monotonic() - began > LIMIT - 1
        for _ in range(round(LIMIT / 0.1)):
            assert sips.recv(64 * 1024)
            time.sleep(0.1)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "GET /slow HT",
        "GET /slow HTTP/1.1\r\nHost",
        "POST /length HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nhalf of it",
        "POST /length HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhal",
        ask("/wait"),
        ask("/slow"),
        ask("/flood"),
        ask("/slow") * 5,
    ],
)
@pytest.mark.parametrize("reset", [False, True])
def test_one_that_goes_away_leaves_nothing(strict: Echo, text: str, reset: bool) -> None:
    clients = [call(strict, text) for _ in range(5)]
    time.sleep(0.3)
    for client in clients:
        if reset:  # With a reset in place of an end.
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        client.close()
    seconds_until(lambda: only_ours(strict))
