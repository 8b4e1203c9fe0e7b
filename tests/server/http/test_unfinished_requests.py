"""Incomplete bodies and messages: refused by their head, counted, and limited in time and in bytes."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.exceptions import ConnectionClosedError
from websockets.sync.client import connect

from responses_app.server.http.unfinished import ByteBudget, Charge, Full
from tests.support import plain_http
from tests.support.server.echo_process import Echo
from tests.support.server.raw_answers import MIB, answer
from tests.support.server.slow_clients import gone, only_ours, wait_until_only_ours
from tests.support.waiting import wait_until

KIB = 1024


@pytest.fixture(scope="module")
def small() -> Iterator[Echo]:
    """A server with keys, 1 MiB of unfinished bodies, and 400 KiB of one key."""
    echo = Echo(keys=True, unfinished=MIB, unfinished_each=400 * KIB, BODY_GRACE=60)
    yield echo
    echo.end()


def begin(
    echo: Echo, key: str, size: int, sent: int, path: str = "/length", head: str = "", length: bool = True
) -> socket.socket:
    """A request whose body has come in part."""
    client = socket.create_connection(("127.0.0.1", echo.port), timeout=60)
    framing = f"Content-Length: {size}" if length else "Transfer-Encoding: chunked"
    authorization = f"Authorization: {key}\r\n" if key else ""
    client.sendall(f"POST {path} HTTP/1.1\r\nHost: x\r\n{authorization}{head}{framing}\r\n\r\n".encode())
    client.sendall(b"x" * sent if length else b"%x\r\n%b\r\n" % (sent, b"x" * sent) if sent else b"")
    return client


def wait_until_counted(echo: Echo, size: int) -> None:
    """Wait until the server counts `size` bytes of unfinished bodies."""
    wait_until(lambda: echo.get("/state")["unfinished"] == size, explain=lambda: echo.get("/state"))


@pytest.mark.parametrize("length", [True, False])
@pytest.mark.parametrize("key", ["", "wrong"])
def test_request_without_a_valid_key_is_answered_and_its_body_dropped(small: Echo, key: str, length: bool) -> None:
    with begin(small, key, 50 * MIB, 0, length=length) as client:
        status, headers, error = answer(client)
        assert (status, headers["connection"]) == (401, "close")
        assert headers["x-request-id"].startswith("req_")
        assert (error["type"], error["code"]) == ("invalid_request_error", "invalid_api_key")
        # The client has not looked yet: what it sends does not end in a reset.
        for _ in range(50):
            client.sendall(b"x" * MIB)
        assert small.get("/state")["unfinished"] == 0
        assert client.recv(1) == b"", "and the connection is closed"


def test_time_of_a_refused_request_has_the_look_up_of_its_key(small: Echo) -> None:
    with begin(small, "wrong", 50 * MIB, 0) as client:
        assert answer(client)[0] == 401
    # The look-up takes a tenth of a second, and the time has whole milliseconds.
    assert small.get("/made")["refused"] >= 99


def test_client_that_sends_all_before_it_reads_receives_the_answer(small: Echo) -> None:
    answered = plain_http.post(f"http://127.0.0.1:{small.port}/length", content=b"x" * (40 * MIB), timeout=180)
    assert answered.status_code == 401
    answered = plain_http.post(f"http://127.0.0.1:{small.port}/state", content=b"x" * (40 * MIB), timeout=180)
    assert answered.status_code == 413
    assert "1 MiB" in answered.json()["error"]["message"]


@pytest.mark.parametrize(("key", "first"), [("", b"HTTP/1.1 401"), ("wrong", b"HTTP/1.1 401"), ("good", b"HTTP/1.1 100")])
def test_expect_100_continue_is_answered_by_the_key(small: Echo, key: str, first: bytes) -> None:
    with begin(small, key, 5, 0, head="Expect: 100-continue\r\n") as client:
        received = client.recv(65536)
        assert received.startswith(first)
        assert (b"100 Continue" in received) is (first == b"HTTP/1.1 100")
        if key == "good":
            client.sendall(b"12345")
            assert answer(client)[0] == 200


@pytest.mark.parametrize("key", ["good", "new"])
def test_body_behind_its_head_waits_for_the_key(small: Echo, key: str) -> None:
    with begin(small, key, 5, 5) as client:
        assert answer(client)[2] == {"length": 5}
        # The connection is kept, and what is sent behind a body is the next request.
        client.sendall(b"POST /length HTTP/1.1\r\nHost: x\r\nAuthorization: other\r\nContent-Length: 3\r\n\r\nabc" * 2)
        received = b""
        while received.count(b'{"length": 3}') < 2:
            received += client.recv(65536)


def test_body_with_a_length_over_the_limit_is_not_read(small: Echo) -> None:
    with begin(small, "good", 64 * MIB + 1, 0) as client:
        assert answer(client)[0] == 413
    with begin(small, "", MIB + 1, 0, path="/state") as client:
        assert answer(client)[0] == 413
    with begin(small, "", MIB // 64, MIB // 64, path="/state") as client:
        assert answer(client)[0] == 200


def test_unfinished_bodies_are_limited_per_key_and_in_total(small: Echo) -> None:
    with begin(small, "a", MIB, 350 * KIB), begin(small, "b", MIB, 350 * KIB):
        wait_until_counted(small, 700 * KIB)
        with begin(small, "a", MIB, 100 * KIB) as more:
            status, headers, error = answer(more)
            assert (status, error["type"], error["code"]) == (429, "rate_limit_error", "rate_limit_exceeded")
            assert int(headers["retry-after"]) > 0
        with begin(small, "c", MIB, 350 * KIB) as over:
            status, headers, error = answer(over)
            assert (status, error["type"]) == (503, "server_error")
            assert int(headers["retry-after"]) > 0
        wait_until_counted(small, 700 * KIB)
    wait_until_counted(small, 0)
    with begin(small, "c", 350 * KIB, 350 * KIB) as client:
        assert answer(client)[0] == 200
    wait_until_counted(small, 0)


def test_unfinished_bodies_without_a_key_have_a_small_limit(small: Echo) -> None:
    with begin(small, "", 100 * KIB, 40 * KIB, path="/state"):
        wait_until_counted(small, 40 * KIB)
        with begin(small, "", 100 * KIB, 40 * KIB, path="/state") as client:
            assert answer(client)[0] == 429
        with begin(small, "a", 300 * KIB, 300 * KIB) as client:
            assert answer(client)[0] == 200
    wait_until_counted(small, 0)


def test_unfinished_websocket_messages_count_with_the_bodies(small: Echo) -> None:
    url, headers = f"ws://127.0.0.1:{small.port}/", {"Authorization": "good"}
    with begin(small, "good", 5, 5) as client:
        assert answer(client)[0] == 200, "the key is remembered"
    with connect(url, additional_headers=headers, ping_interval=None) as one, connect(url, additional_headers=headers) as other:
        parts = iter([b"x" * (300 * KIB)])

        def wait() -> Iterator[str]:
            for part in parts:
                yield part.decode()
            wait_until_counted(small, 300 * KIB)
            with suppress(ConnectionClosedError):
                other.send("y" * (200 * KIB))
            with pytest.raises(ConnectionClosedError) as closed:
                other.recv(30)
            assert closed.value.rcvd is not None
            assert (closed.value.rcvd.code, "this key" in closed.value.rcvd.reason) == (1013, True)
            wait_until_counted(small, 300 * KIB)
            yield "z"

        one.send(wait())
        assert one.recv(10) == str(300 * KIB + 1)
    wait_until_counted(small, 0)


def test_data_before_the_handshake_is_limited() -> None:
    echo = Echo()
    head = "GET /late HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    try:
        with socket.create_connection(("127.0.0.1", echo.port), timeout=60) as much:
            much.sendall((head + key).encode())
            wait_until(lambda: not _sends(much))
        with socket.create_connection(("127.0.0.1", echo.port), timeout=60) as little:
            little.sendall((head + key).encode())
            wait_until(lambda: echo.get("/state")["connections"] == 2)
            little.sendall(b"\x81\x83\0\0\0\0abc")
            echo.get("/open")
            received = b""
            while not received.endswith(b"\x81\x013"):
                received += little.recv(4096)
    finally:
        echo.end()


def test_body_of_any_rate_has_a_time_limit() -> None:
    echo = Echo(BODY_LONGEST=1)
    try:
        with begin(echo, "", 64 * MIB, 0) as client:
            client.settimeout(0.1)
            received = bytearray()

            def is_answered() -> bool:
                client.sendall(b"x" * 20_000)
                with suppress(TimeoutError):
                    received.extend(client.recv(65536))
                return bool(received)

            wait_until(is_answered)
            assert received.startswith(b"HTTP/1.1 408 ")
            assert b"retry" not in received.lower()
        wait_until_only_ours(echo)
    finally:
        echo.end()


def test_refused_client_that_continues_to_send_is_cut() -> None:
    echo = Echo(keys=True, LINGER_LONGEST=1)
    try:
        with begin(echo, "wrong", 50 * MIB, 0) as client:
            assert answer(client)[0] == 401

            wait_until(lambda: not _sends(client))
        wait_until_only_ours(echo)
    finally:
        echo.end()


def test_silent_connections_end_for_new_ones_beyond_the_limit() -> None:
    echo, stack = Echo(connections=5, WAITING_S=0), ExitStack()
    try:
        busy = stack.enter_context(socket.create_connection(("127.0.0.1", echo.port), timeout=60))
        busy.sendall(b"GET /wait HTTP/1.1\r\nHost: x\r\n\r\n")
        wait_until(lambda: echo.get("/state")["requests"] == 2)
        silent = [stack.enter_context(socket.create_connection(("127.0.0.1", echo.port), timeout=60)) for _ in range(4)]
        # The connection of this request is the sixth.
        assert "requests" in echo.get("/state")
        wait_until(lambda: all(map(gone, silent)))
        assert not gone(busy)
    finally:
        stack.close()
        echo.end()


def test_connections_over_the_limit_are_answered_429() -> None:
    echo, stack = Echo(connections=5, WAITING_S=3600), ExitStack()
    try:
        clients = [stack.enter_context(socket.create_connection(("127.0.0.1", echo.port), timeout=60)) for _ in range(5)]
        with socket.create_connection(("127.0.0.1", echo.port), timeout=60) as more:
            status, headers, error = answer(more)
            assert (status, error["type"], headers["connection"]) == (429, "rate_limit_error", "close")
            assert headers["retry-after"] == "1"
            assert more.recv(1) == b""
        assert not any(map(gone, clients))
        stack.close()
        wait_until(lambda: _answers(echo))
    finally:
        stack.close()
        echo.end()


def _sends(client: socket.socket) -> bool:
    """Return whether the server still reads."""
    try:
        client.sendall(b"x" * 65536)
    except OSError:
        return False
    return True


def _answers(echo: Echo) -> bool:
    try:
        return only_ours(echo)
    except (httpx2.HTTPError, KeyError):
        return False


STEPS = st.lists(st.tuples(st.sampled_from("ab-"), st.integers(0, 2), st.integers(0, 60)), max_size=60)


@given(STEPS)
def test_byte_budget_stays_within_its_limits_and_is_released(steps: list[tuple[str, int, int]]) -> None:
    budget = ByteBudget(process=100, each=40)
    charges: dict[tuple[str, int], Charge] = {}
    for who, number, size in steps:
        opened = budget.of_address("::1") if who == "-" else budget.of_key(who)
        charge = charges.setdefault((who, number), opened)
        before = dict(budget.totals)
        if size > 50:
            charge.release()
        else:
            try:
                charge.add(size)
            except Full:
                assert dict(budget.totals) == before
        held = {name: sum(one.size for (who, _), one in charges.items() if who == name) for name in "ab-"}
        assert budget.totals["process"] == sum(held.values()) <= 100
        assert max(held["a"], held["b"]) <= 40
        assert held["-"] <= 5
    for charge in charges.values():
        charge.release()
        charge.release()
    assert not +budget.totals
