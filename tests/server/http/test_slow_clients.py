"""Harmful clients: silent, slow, disconnected. Their costs are limited, and other clients are served as usual."""

from __future__ import annotations

import signal
import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.support import plain_http
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

MEGABYTE = 1024
# Fewer than the backlog of the listening socket: the kernel delays further connections by seconds.
SILENT = 200
RATES = {"HEAD_LIMIT": LIMIT, "IDLE_LIMIT": LIMIT, "BODY_GRACE": LIMIT, "STALL_LIMIT": LIMIT}


@pytest.fixture(scope="module")
def strict() -> Iterator[Echo]:
    """A server with short limits."""
    echo = Echo(**RATES)
    yield echo
    echo.end()


def call(echo: Echo, text: str = "") -> socket.socket:
    client = socket.create_connection(("127.0.0.1", echo.port))
    client.sendall(text.encode())
    return client


def read_all(client: socket.socket) -> bytes:
    with client.makefile("rb") as stream:
        return stream.read()


def ask(path: str) -> str:
    return f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n"


def test_connections_to_a_busy_server_are_accepted_by_the_kernel() -> None:
    echo = Echo()
    try:
        echo.process.send_signal(signal.SIGSTOP)
        with ExitStack() as stack:
            for _ in range(SILENT):
                stack.enter_context(socket.create_connection(("127.0.0.1", echo.port), timeout=60))
            echo.process.send_signal(signal.SIGCONT)
            wait_until(lambda: echo.get("/state")["connections"] > SILENT)
    finally:
        echo.end()


def test_silent_connections_are_cut_and_a_waiting_request_is_not(strict: Echo) -> None:
    with ExitStack() as stack:
        waiting = stack.enter_context(call(strict, ask("/wait")))
        idle = [stack.enter_context(call(strict)) for _ in range(SILENT)]
        wait_until(lambda: strict.get("/state")["connections"] > SILENT)
        assert wait_until(lambda: all(map(gone, idle))) > LIMIT - 1
        assert not gone(waiting)


def test_connection_that_is_idle_after_an_answer_is_cut_later(strict: Echo) -> None:
    with call(strict) as client:
        for _ in range(3):
            client.sendall(ask("/made").encode())
            assert b"200 OK" in client.recv(4096)
            pause_client(LIMIT * 0.5)
            assert not gone(client), "the limit counts from the last request"
            client.setblocking(True)
        wait_until(lambda: gone(client))


def test_clients_that_send_their_head_or_body_byte_by_byte_are_cut(strict: Echo) -> None:
    heads = ["", "G", "GET / HTTP/1.1\r\nHost: x\r\n", "GET / HTTP/1.1\r\nHost: x\r\nX-Long: "]
    body = "POST /length HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n"
    with ExitStack() as stack:
        trickle(*[stack.enter_context(call(strict, begin)) for begin in (*heads, body)])


def test_body_at_the_minimum_rate_is_accepted(strict: Echo) -> None:
    pieces = 24

    def slowly() -> Iterator[bytes]:
        for _ in range(pieces):
            yield bytes(4096)
            pause_client(1.5 * LIMIT / pieces)

    answer = plain_http.post(f"http://127.0.0.1:{strict.port}/length", content=slowly(), timeout=60)
    assert answer.json() == {"length": pieces * 4096}


def test_body_of_a_page_has_less_time_than_one_of_the_api() -> None:
    echo = Echo(PAGE_LONGEST=0.0)
    body = "POST {} HTTP/1.1\r\nHost: x\r\nContent-Length: 8\r\nConnection: close\r\n\r\nhalf"
    try:
        with call(echo, body.format("/length")) as api, call(echo, body.format("/page")) as page:
            refusal = read_all(page)
            assert refusal.startswith(b"HTTP/1.1 408 ")
            assert b"The body of your request has not come in time." in refusal
            api.sendall(b"half")
            assert b'{"length": 8}' in read_all(api)
    finally:
        echo.end()


@pytest.mark.parametrize("path", ["/flood", "/large"])
def test_clients_that_never_read_cost_little_and_are_cut(path: str) -> None:
    count = 30 if path == "/flood" else 3
    # Long enough that no client is cut before its costs are measured.
    echo = Echo(**{**RATES, "STALL_LIMIT": 2 * LIMIT})
    try:
        before = echo.get("/state")["memory"]
        with ExitStack() as stack:
            stalled = [stack.enter_context(call(echo, ask(path))) for _ in range(count)]
            wait_until(lambda: echo.get("/state")["paused"] == count)
            assert plain_http.get(f"http://127.0.0.1:{echo.port}/slow", timeout=60).text.endswith("end\n")
            held = echo.get("/state")
            if path == "/flood":
                # 64 KiB in front of each, and one message; without back-pressure it is a gigabyte for each.
                assert held["memory"] - before < count * MEGABYTE
            wait_until_only_ours(echo)
            assert all(map(gone, stalled))
        assert echo.get("/state")["memory"] - before < 40 * MEGABYTE
    finally:
        echo.end()


def test_client_that_reads_single_bytes_is_cut_and_a_slow_reader_is_not(strict: Echo) -> None:
    with call(strict, ask("/flood")) as crumbs, call(strict, ask("/flood")) as sips:

        def is_cut() -> bool:
            assert sips.recv(64 * 1024)
            if strict.get("/state")["connections"] == 2:  # This request, and `sips`.
                return True
            assert crumbs.recv(1)
            return False

        assert wait_until(is_cut, poll_s=0.1) > LIMIT - 1
        for _ in range(round(LIMIT / 2 / 0.1)):
            assert sips.recv(64 * 1024)
            pause_client(0.1)


@pytest.mark.parametrize("reset", [False, True])
def test_disconnected_clients_leave_nothing(strict: Echo, reset: bool) -> None:
    texts = [
        "",
        "GET /slow HT",
        "GET /slow HTTP/1.1\r\nHost",
        "POST /length HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nhalf of it",
        "POST /length HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhal",
        ask("/wait"),
        ask("/slow"),
        ask("/flood"),
        ask("/slow") * 5,
    ]
    clients = [call(strict, text) for text in texts for _ in range(3)]
    wait_until_read(strict, len(clients))
    close_all(clients, reset)
    wait_until_only_ours(strict)
