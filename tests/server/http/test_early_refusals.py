"""A whole server answers a request without a key before its body has come, in the words of the application."""

from __future__ import annotations

import json
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import httpx2
import pytest

from tests.support.server.processes import all_named, family
from tests.support.server.raw_answers import MIB, answer
from tests.support.server.serve_command import Server
from tests.support.server.slow_clients import seconds_until

PATHS = ["/v1/responses", "/openresponses/v1/responses", "/v1/conversations", "/v1/responses/compact", "/v1/nowhere"]


@contextmanager
def head(server: Server, path: str, size: int, *lines: str) -> Iterator[socket.socket]:
    """A request whose head has come, and nothing of its body."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as client:
        more = "".join(f"{line}\r\n" for line in lines)
        client.sendall(f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{more}Content-Length: {size}\r\n\r\n".encode())
        yield client


def temporary(server: Server) -> int:
    """Bytes of temporary files that the server and all that it has started hold."""
    total = 0
    for pid, _ in family(server.process.pid):
        try:
            for entry in os.scandir(f"/proc/{pid}/fd"):
                if "(deleted)" in os.readlink(entry.path):
                    total += os.stat(entry.path).st_size
        except OSError:
            continue
    return total


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("header", ["", "Authorization: Bearer sk-unknown-key-of-nobody", "Authorization: Basic eDp5"])
def test_the_head_is_answered_as_the_application_answers(shared: Server, path: str, header: str) -> None:
    name, _, value = header.partition(": ")
    expected = httpx2.get(f"{shared.url}/v1/models", headers={name: value} if name else {})
    with head(shared, path, 50 * MIB, *([header] if header else [])) as client:
        status, headers, error = answer(client)
    assert (status, error) == (401, expected.json()["error"])
    assert set(expected.headers) - {"date", "transfer-encoding"} <= set(headers), "no header is missing"
    assert headers["connection"] == "close"
    assert headers["x-request-id"].startswith("req_")
    assert headers["x-request-id"] in shared.said


def test_many_bodies_without_a_key_hold_nothing(shared: Server) -> None:
    before = temporary(shared)
    with ExitStack() as stack:
        clients = [stack.enter_context(head(shared, "/v1/responses", 50 * MIB)) for _ in range(12)]
        for client in clients:
            client.sendall(b"x" * (4 * MIB))
        for client in clients:
            assert answer(client)[0] == 401
        assert temporary(shared) - before < MIB


def test_pages_take_a_small_body(shared: Server) -> None:
    for path in ("/sign-in", "/admin/login/", "/health", "/static/x", "/"):
        with head(shared, path, MIB + 1, "Authorization: Bearer sk-my-own-key") as client:
            assert answer(client)[0] == 413
    with head(shared, "/v1/responses", 64 * MIB + 1, "Authorization: Bearer sk-my-own-key") as client:
        assert answer(client)[0] == 413


def test_a_key_that_is_known_is_served_as_before(shared: Server) -> None:
    body = json.dumps({"model": "tape", "input": "Hi", "store": False}).encode()
    with head(shared, "/v1/responses", len(body), "Authorization: Bearer sk-my-own-key", "Expect: 100-continue") as client:
        assert client.recv(65536).startswith(b"HTTP/1.1 100 ")
        client.sendall(body)
        said = client.recv(65536)
        assert said.startswith(b"HTTP/1.1 200 ")
    seconds_until(lambda: temporary(shared) < 100 * MIB)


def test_without_the_database_a_missing_key_is_401_and_an_unknown_one_503(
    tmp_path_factory: pytest.TempPathFactory, tape: str
) -> None:
    server = Server(tmp_path_factory.mktemp("away") / "data", "--engine", tape).ready()
    stopped = all_named(server.process.pid, "postgres")
    assert stopped
    try:
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        with head(server, "/v1/responses", 50 * MIB, "Authorization: Bearer sk-somebody") as unknown:
            with head(server, "/v1/responses", 50 * MIB) as missing:
                assert answer(missing)[0] == 401
            status, headers, error = answer(unknown)
        assert (status, error["type"], headers["retry-after"]) == (503, "server_error", "2")
    finally:
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)
        server.end()
