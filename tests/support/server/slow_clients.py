"""Clients that send and read slowly, and waiting for what the server does about them."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable

from tests.support.server.echo_process import Echo

LIMIT = 3.0


# A look every two seconds, and then a busy machine.
SLACK = 12.0


def gone(client: socket.socket) -> bool:
    """Whether the server has hung up; what it has sent before is read."""
    client.setblocking(False)
    try:
        while client.recv(2**20):
            pass
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def seconds_until(happened: Callable[[], bool], limit: float = LIMIT + SLACK) -> float:
    began = time.monotonic()
    while not happened():
        assert time.monotonic() - began < limit, "it did not happen in time"
        time.sleep(0.05)
    return time.monotonic() - began


def only_ours(echo: Echo) -> bool:
    """Whether the connection that asks is the only one that is left, and so is its request."""
    state = echo.get("/state")
    return state["connections"] == 1 and state["requests"] <= 2


def trickle(client: socket.socket, byte: bytes, pause: float) -> None:
    """Send byte for byte until the server has had enough."""

    def enough() -> bool:
        try:
            client.sendall(byte)
        except OSError:
            return True
        time.sleep(pause)
        return gone(client)

    assert seconds_until(enough) > LIMIT - 1
