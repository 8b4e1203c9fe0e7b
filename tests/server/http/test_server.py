"""The HTTP server over real connections."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator

import httpx2
import pytest
from twisted.internet.address import IPv6Address
from twisted.internet.protocol import Factory
from twisted.internet.tcp import Port
from websockets.sync.client import connect

from responses_app.installation.data_dir import ROOT
from responses_app.server.http.errors import BODY_LIMIT
from responses_app.server.http.server import detect_family
from tests.support import plain_http
from tests.support.server.echo_app import DRAIN
from tests.support.server.echo_process import Echo
from tests.support.server.slow_clients import stable_value
from tests.support.waiting import wait_until


@pytest.fixture(scope="module")
def echo() -> Iterator[Echo]:
    echo = Echo()
    yield echo
    echo.end()


@pytest.fixture
def fresh() -> Iterator[Echo]:
    echo = Echo()
    yield echo
    echo.end()


def final_count(echo: Echo, path: str) -> int:
    """Return the number of chunks made for that path, when it does not grow any more."""
    return stable_value(lambda: echo.get("/made")[path])


def open_websocket(echo: Echo) -> socket.socket:
    """Return the TCP connection of a WebSocket."""
    head = "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    client = socket.create_connection(("127.0.0.1", echo.port), timeout=60)
    client.sendall(f"{head}Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n".encode())
    assert b"101" in client.recv(4096)
    return client


def test_small_writes_are_sent_at_once(echo: Echo) -> None:
    assert echo.get("/nodelay") == {"nodelay": 1}


def test_body_of_64_mib_is_accepted(echo: Echo) -> None:
    body = b"x" * BODY_LIMIT
    answer = plain_http.post(f"http://127.0.0.1:{echo.port}/length", content=body, timeout=60)
    assert answer.json() == {"length": BODY_LIMIT}


@pytest.mark.parametrize("chunked", [False, True])
def test_larger_body_is_refused_with_an_error_object(echo: Echo, chunked: bool) -> None:
    pieces = [b"x" * BODY_LIMIT, b"x"]
    content: bytes | Iterator[bytes] = iter(pieces) if chunked else b"".join(pieces)
    answer = plain_http.post(f"http://127.0.0.1:{echo.port}/length", content=content, timeout=60)
    assert answer.status_code == 413
    assert answer.json()["error"]["type"] == "invalid_request_error"
    assert set(answer.json()["error"]) == {"message", "type", "param", "code"}
    assert answer.headers["x-request-id"].startswith("req_")


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET / HTTP/1.1\r\nX: " + b"x" * 20_000 + b"\r\n\r\n", 431),
        (b"GET /" + b"x" * 20_000 + b" HTTP/1.1\r\n\r\n", 431),
        (b"".join([b"GET / HTTP/1.1\r\n", *(b"X-%d: %b\r\n" % (n, b"x" * 4000) for n in range(5)), b"\r\n"]), 431),
        (b"POST /length HTTP/1.1\r\nContent-Length: 5x\r\n\r\n", 400),
        (b"nonsense\r\n\r\n", 400),
        ("GET /é HTTP/1.1\r\nHost: x\r\n\r\n".encode(), 400),
    ],
)
def test_invalid_http_is_answered_with_an_error_object(echo: Echo, request_: bytes, status: int) -> None:
    with socket.create_connection(("127.0.0.1", echo.port), timeout=60) as client:
        client.sendall(request_)
        received = b""
        while not received.endswith(b"}"):
            received += client.recv(65536)
    head, body = received.split(b"\r\n\r\n", 1)
    assert head.startswith(b"HTTP/1.1 %d " % status)
    assert b"x-request-id: req_" in head.lower()
    assert set(json.loads(body)["error"]) == {"message", "type", "param", "code"}


def test_status_has_its_phrase(echo: Echo) -> None:
    answer = plain_http.get(f"http://127.0.0.1:{echo.port}/limited")
    assert (answer.status_code, answer.reason_phrase) == (429, "Too Many Requests")


def test_body_of_type_multipart_reaches_the_application(echo: Echo) -> None:
    headers = {"Content-Type": "multipart/form-data; boundary=x"}
    answer = plain_http.post(f"http://127.0.0.1:{echo.port}/length", content=b"{}", headers=headers, timeout=60)
    assert answer.json() == {"length": 2}


def test_application_waits_for_a_client_that_does_not_read(echo: Echo) -> None:
    with socket.create_connection(("127.0.0.1", echo.port)) as client:
        client.sendall(b"GET /flood HTTP/1.1\r\nHost: x\r\n\r\n")
        waiting = final_count(echo, "/flood")
        assert 0 < waiting < 2**17 / 4
        for _ in range(200):
            client.recv(2**17)
        assert final_count(echo, "/flood") > waiting, "reading lets the stream continue"


def test_application_waits_for_a_websocket_that_does_not_read(echo: Echo) -> None:
    with open_websocket(echo) as client:
        # A masked text frame (RFC 6455 §5.2) with an all-zero mask, so that it reads as it is.
        client.sendall(b"\x81\x85\0\0\0\0flood")
        assert 0 < final_count(echo, "/") < 2**17 / 4


def test_close_follows_the_frames_of_the_same_turn_of_the_loop(echo: Echo) -> None:
    with open_websocket(echo) as client:
        client.sendall(b"\x81\x85\0\0\0\0twice")
        frames, close = b"\x81\x015\x81\x05twice", b"\x88\x02\x03\xe8"
        received = b""
        while len(received) < len(frames + close):
            received += client.recv(4096)
        assert received == frames + close


def test_websocket_message_of_32_mib_is_accepted(echo: Echo) -> None:
    with connect(f"ws://127.0.0.1:{echo.port}/", max_size=None) as client:
        client.send("x" * (32 * 1024 * 1024))
        assert client.recv() == str(32 * 1024 * 1024)


def test_stream_ends_before_the_server_stops(fresh: Echo) -> None:
    with plain_http.stream("GET", f"http://127.0.0.1:{fresh.port}/slow", timeout=60) as answer:
        lines = answer.iter_lines()
        assert next(lines) == "0"
        fresh.process.send_signal(signal.SIGINT)
        assert list(lines) == [*map(str, range(1, 10)), "end"]
    assert fresh.process.wait(20) == 0
    assert [fresh.line(), fresh.line()] == ["draining", "closed"]


def test_stopping_server_accepts_no_connections(fresh: Echo) -> None:
    def is_refused() -> bool:
        try:
            fresh.get("/made")
        except httpx2.TransportError as error:
            return isinstance(error, httpx2.ConnectError)
        return False

    fresh.process.send_signal(signal.SIGTERM)
    assert fresh.line() == "draining"
    wait_until(is_refused)
    assert fresh.process.poll() is None, "the shutdown waits for responses"


def test_second_signal_ends_the_wait_for_responses(fresh: Echo) -> None:
    fresh.process.send_signal(signal.SIGINT)
    assert fresh.line() == "draining"
    fresh.process.send_signal(signal.SIGINT)
    assert fresh.process.wait(DRAIN / 2) == 0


def test_address_in_use_is_reported() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        command = [sys.executable, "-m", "tests.support.server.echo_app", str(other.getsockname()[1])]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 1
    assert "in use" in done.stderr
    assert "ready" not in done.stdout


def test_refusal_names_the_limit_of_a_body() -> None:
    from responses_app.server.http.errors import too_large

    assert too_large(BODY_LIMIT).message == "The body of your request is larger than 64 MiB."
    assert too_large(513 * 1024 * 1024).message.endswith("A file may have up to 512 MiB.")


def test_adopted_socket_of_ipv6_names_its_clients() -> None:
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as listening:
        port = Port._fromListeningDescriptor(None, listening.fileno(), socket.AF_INET, Factory())
        # As after the start of a port, which would need the loop.
        port.socket = port._preexistingSocket
        detect_family(port)
        with socket.create_connection(listening.getsockname()[:2]) as client:
            accepted, address = port.socket.accept()
            accepted.close()
            assert address[:2] == client.getsockname()[:2]
        assert port._buildAddr(address) == IPv6Address("TCP", *address[:2])
        port.socket.close()
