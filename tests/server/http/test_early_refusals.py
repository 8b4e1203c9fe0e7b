"""Requests without a key: a whole server answers them before their body arrives, with the errors of the application."""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

import pytest

from tests.support import plain_http
from tests.support.server.processes import all_named, family, send_to_all
from tests.support.server.raw_answers import MIB, answer
from tests.support.server.serve_command import Server
from tests.support.waiting import wait_until

PATHS = ["/v1/responses", "/openresponses/v1/responses", "/v1/conversations", "/v1/responses/compact", "/v1/nowhere"]


@contextmanager
def head(server: Server, path: str, size: int, *lines: str) -> Iterator[socket.socket]:
    """Send the head of a request without a body."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=180) as client:
        more = "".join(f"{line}\r\n" for line in lines)
        client.sendall(f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{more}Content-Length: {size}\r\n\r\n".encode())
        yield client


def temporary(server: Server) -> int:
    """Return the bytes of deleted files that the server and its descendants have open."""
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
@pytest.mark.parametrize("header", ["", "Authorization: Bearer sk-unknown-key", "Authorization: Basic eDp5"])
def test_head_without_a_valid_key_is_answered_like_the_application(shared: Server, path: str, header: str) -> None:
    name, _, value = header.partition(": ")
    expected = plain_http.get(f"{shared.url}/v1/models", headers={name: value} if name else {})
    with head(shared, path, 50 * MIB, *([header] if header else [])) as client:
        status, headers, error = answer(client)
    assert (status, error) == (401, expected.json()["error"])
    assert set(expected.headers) - {"date", "transfer-encoding"} <= set(headers), "no header is missing"
    assert (headers["connection"], headers["x-should-retry"]) == ("close", "false")
    assert headers["x-request-id"].startswith("req_")
    assert headers["x-request-id"] in shared.output


def test_bodies_without_a_key_use_no_disk(shared: Server) -> None:
    before = temporary(shared)
    with ExitStack() as stack:
        clients = [stack.enter_context(head(shared, "/v1/responses", 50 * MIB)) for _ in range(12)]
        for client in clients:
            client.sendall(b"x" * (4 * MIB))
        for client in clients:
            assert answer(client)[0] == 401
        assert temporary(shared) - before < MIB


@pytest.mark.parametrize(
    ("path", "limit"),
    [
        ("/sign-in", MIB),
        ("/admin/login/", MIB),
        ("/health", MIB),
        ("/static/x", MIB),
        ("/", MIB),
        ("/v1/responses", 64 * MIB),
    ],
)
def test_body_over_the_limit_of_its_path_is_refused(shared: Server, path: str, limit: int) -> None:
    with head(shared, path, limit + 1, "Authorization: Bearer sk-my-own-key") as client:
        assert answer(client)[0] == 413


def test_valid_key_is_served(shared: Server) -> None:
    body = json.dumps({"model": "tape", "input": "Hi", "store": False}).encode()
    with head(shared, "/v1/responses", len(body), "Authorization: Bearer sk-my-own-key", "Expect: 100-continue") as client:
        assert client.recv(65536).startswith(b"HTTP/1.1 100 ")
        client.sendall(body)
        assert client.recv(65536).startswith(b"HTTP/1.1 200 ")
    wait_until(lambda: temporary(shared) < 100 * MIB)


def test_missing_key_is_401_and_unknown_key_503_without_the_database(
    tmp_path_factory: pytest.TempPathFactory, tape: str
) -> None:
    server = Server(tmp_path_factory.mktemp("away") / "data", "--engine", tape).ready()
    stopped = all_named(server.process.pid, "postgres")
    assert stopped
    try:
        send_to_all(stopped, signal.SIGSTOP)
        with head(server, "/v1/responses", 50 * MIB, "Authorization: Bearer sk-unknown") as unknown:
            with head(server, "/v1/responses", 50 * MIB) as missing:
                assert answer(missing)[0] == 401
            status, headers, error = answer(unknown)
        assert (status, error["type"], headers["retry-after"]) == (503, "server_error", "2")
    finally:
        send_to_all(stopped, signal.SIGCONT)
        server.end()


@contextmanager
def file_limit(server: Server, size: int) -> Iterator[None]:
    """Let the processes of the server write no file beyond `size` bytes, as on a full disk."""
    before = {}
    try:
        for pid, _ in family(server.process.pid):
            # Postgres runs as another user.
            with suppress(PermissionError):
                before[pid] = resource.prlimit(pid, resource.RLIMIT_FSIZE)
        for pid, (_, most) in before.items():
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, most))
        yield
    finally:
        for pid, limits in before.items():
            resource.prlimit(pid, resource.RLIMIT_FSIZE, limits)


def test_upload_that_cannot_be_kept_is_refused(shared: Server) -> None:
    with file_limit(shared, MIB), head(shared, "/v1/files", 3 * MIB, "Authorization: Bearer sk-my-own-key") as client:
        client.sendall(bytes(2 * MIB))
        status, headers, error = answer(client)
    assert (status, error["code"]) == (507, "insufficient_storage")
    assert headers["x-should-retry"] == "false"
    assert headers["x-request-id"] in shared.output
    assert "a body of a request cannot be kept" in shared.output
    assert "Traceback" not in shared.output


def test_short_upload_that_cannot_be_kept_is_refused(shared: Server) -> None:
    # The limit holds for the log as well, so the log says nothing.
    with file_limit(shared, 100), head(shared, "/v1/files", 1000, "Authorization: Bearer sk-my-own-key") as client:
        client.sendall(bytes(1000))
        status, _, error = answer(client)
    assert (status, error["code"]) == (507, "insufficient_storage")


def test_a_client_with_https_is_refused_at_once_with_a_reason(shared: Server) -> None:
    before = len(shared.output)
    with socket.create_connection(("127.0.0.1", shared.port), timeout=20) as client, pytest.raises(ssl.SSLError):
        # Without the refusal the client waits half a minute for an answer.
        ssl.create_default_context().wrap_socket(client, server_hostname="localhost")
    wait_until(lambda: "the client 127.0.0.1 sent a TLS handshake to this port" in shared.output[before:])
