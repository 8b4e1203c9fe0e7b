"""The front door over real connections."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import httpx2
import pytest
from websockets.sync.client import connect

from responses_app.local.data_dir import ROOT
from responses_app.server.http.errors import BODY_LIMIT
from tests.support.server.echo_app import DRAIN
from tests.support.server.echo_process import Echo


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


def settled(echo: Echo, path: str) -> int:
    """How many chunks were made for that path, once the number has stopped to grow."""
    before = -1
    while (now := echo.get("/made")[path]) != before:
        before = now
        time.sleep(0.3)
    return now


def upgraded(echo: Echo) -> socket.socket:
    """A WebSocket, byte by byte."""
    head = "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    client = socket.create_connection(("127.0.0.1", echo.port), timeout=10)
    client.sendall(f"{head}Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n".encode())
    assert b"101" in client.recv(4096)
    return client


def test_it_sends_small_writes_at_once(echo: Echo) -> None:
    assert echo.get("/nodelay") == {"nodelay": 1}


def test_it_takes_a_body_of_64_mib(echo: Echo) -> None:
    body = b"x" * BODY_LIMIT
    answer = httpx2.post(f"http://127.0.0.1:{echo.port}/length", content=body, timeout=60)
    assert answer.json() == {"length": BODY_LIMIT}


@pytest.mark.parametrize("chunked", [False, True])
def test_it_refuses_a_larger_body_with_an_error_object(echo: Echo, chunked: bool) -> None:
    pieces = [b"x" * BODY_LIMIT, b"x"]
    content: bytes | Iterator[bytes] = iter(pieces) if chunked else b"".join(pieces)
    answer = httpx2.post(f"http://127.0.0.1:{echo.port}/length", content=content, timeout=60)
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
def test_what_is_no_http_is_answered_with_an_error_object(echo: Echo, request_: bytes, status: int) -> None:
    with socket.create_connection(("127.0.0.1", echo.port), timeout=10) as client:
        client.sendall(request_)
        said = b""
        while not said.endswith(b"}"):
            said += client.recv(65536)
    head, body = said.split(b"\r\n\r\n", 1)
    assert head.startswith(b"HTTP/1.1 %d " % status)
    assert b"x-request-id: req_" in head.lower()
    assert set(json.loads(body)["error"]) == {"message", "type", "param", "code"}


def test_a_body_that_says_it_is_a_form_reaches_the_application(echo: Echo) -> None:
    headers = {"Content-Type": "multipart/form-data; boundary=x"}
    answer = httpx2.post(f"http://127.0.0.1:{echo.port}/length", content=b"{}", headers=headers, timeout=10)
    assert answer.json() == {"length": 2}


def test_it_makes_the_application_wait_for_a_client_that_does_not_read(echo: Echo) -> None:
    with socket.create_connection(("127.0.0.1", echo.port)) as client:
        client.sendall(b"GET /flood HTTP/1.1\r\nHost: x\r\n\r\n")
        stuck = settled(echo, "/flood")
        assert 0 < stuck < 2**17 / 4
        for _ in range(200):
            client.recv(2**17)
        assert settled(echo, "/flood") > stuck, "reading lets it go on"


def test_it_makes_the_application_wait_for_a_socket_that_does_not_read(echo: Echo) -> None:
    with upgraded(echo) as client:
        # A masked text frame (RFC 6455 §5.2) with an all-zero mask, so that it reads as it is.
        client.sendall(b"\x81\x85\0\0\0\0flood")
        assert 0 < settled(echo, "/") < 2**17 / 4


def test_a_close_comes_behind_the_frames_that_were_sent_in_the_same_turn_of_the_loop(echo: Echo) -> None:
    with upgraded(echo) as client:
        client.sendall(b"\x81\x85\0\0\0\0twice")
        frames, close = b"\x81\x015\x81\x05twice", b"\x88\x02\x03\xe8"
        heard = b""
        while len(heard) < len(frames + close):
            heard += client.recv(4096)
        assert heard == frames + close


def test_it_takes_a_socket_message_of_many_mib(echo: Echo) -> None:
    with connect(f"ws://127.0.0.1:{echo.port}/", max_size=None) as client:
        client.send("x" * (32 * 1024 * 1024))
        assert client.recv() == str(32 * 1024 * 1024)


def test_it_lets_a_stream_end_before_it_stops(fresh: Echo) -> None:
    with httpx2.stream("GET", f"http://127.0.0.1:{fresh.port}/slow", timeout=10) as answer:
        lines = answer.iter_lines()
        assert next(lines) == "0"
        fresh.process.send_signal(signal.SIGINT)
        assert list(lines) == [*map(str, range(1, 10)), "end"]
    assert fresh.process.wait(20) == 0
    assert fresh.line() == "closed"


def test_it_accepts_nothing_new_while_it_stops(fresh: Echo) -> None:
    fresh.process.send_signal(signal.SIGTERM)
    time.sleep(0.5)
    assert fresh.process.poll() is None, "it drains"
    with pytest.raises(httpx2.ConnectError):
        fresh.get("/made")


def test_a_second_signal_ends_the_wait(fresh: Echo) -> None:
    fresh.process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    began = time.monotonic()
    fresh.process.send_signal(signal.SIGINT)
    assert fresh.process.wait(20) == 0
    assert time.monotonic() - began < DRAIN - 1


def test_it_says_why_it_could_not_listen() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        command = [sys.executable, "-m", "tests.support.server.echo_app", str(other.getsockname()[1])]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 1
    assert "in use" in done.stderr
    assert "ready" not in done.stdout


def test_its_refusal_names_the_limit() -> None:
    from responses_app.server.http.errors import too_large

    assert "64 MiB" in too_large(BODY_LIMIT).message
