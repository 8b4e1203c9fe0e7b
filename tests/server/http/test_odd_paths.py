"""Paths that no browser sends: each is answered with a client error and without a traceback."""

from __future__ import annotations

import socket

import pytest

from tests.support.server.serve_command import Server

ODD = [
    "/../x",
    "/..%2fx",
    "/%2e%2e/%2e%2e/x",
    "/../../../../../../etc/passwd",
    "/%2e%2e%2f%2e%2e%2fetc/passwd",
    "//etc/passwd",
    "/..\\x",
    "/%5c..%5cx",
    "/%00",
    "/x%00.css",
    "/%ff%fe",
    "/%C3%28",
    "/%0d%0ax",
    "/%",
    "/" + "x" * 300,
    "/" + "x/" * 4000,
    "/" + "%2e%2e/" * 1500,
    "",
    "/",
    "/.",
]


def status(server: Server, target: str, method: str = "GET") -> int:
    """Request exactly this target, as `curl --path-as-is` does, and return the status."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=180) as client:
        client.sendall(f"{method} {target} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode("latin1"))
        received = b""
        while chunk := client.recv(65536):
            received += chunk
    assert received.startswith(b"HTTP/1.1 "), received[:100]
    assert b"Exception inside application" not in received
    return int(received[9:12])


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("odd", ODD, ids=lambda odd: odd[:20])
@pytest.mark.parametrize("prefix", ["/static", "", "/responses", "/v1", "/v1/responses", "/openresponses/v1/models", "/admin"])
def test_odd_path_is_a_client_error(shared: Server, prefix: str, odd: str, method: str) -> None:
    before = len(shared.output)
    assert status(shared, f"{prefix}{odd}" or "/", method) < 500
    assert "Traceback" not in shared.output[before:]


@pytest.mark.parametrize(
    "target", ["/static/../x", "/static/%2e%2e/%2e%2e/etc/passwd", "/static/x%00.css", "/static/" + "x" * 300]
)
def test_path_outside_the_static_files_is_not_found(shared: Server, target: str) -> None:
    assert status(shared, target) == 404


@pytest.mark.parametrize("method", ["GET", "OPTIONS"])
@pytest.mark.parametrize("target", ["*", "http://example.com/static/../x", "x", "?", "%2f", "http://example.com/v1/models"])
def test_target_that_is_no_path_is_a_client_error(shared: Server, target: str, method: str) -> None:
    before = len(shared.output)
    assert status(shared, target, method) < 500
    assert "Traceback" not in shared.output[before:]
