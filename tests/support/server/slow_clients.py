"""Clients that send and read slowly, and waits for the reaction of the server."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from contextlib import suppress

from tests.support.server.echo_process import Echo
from tests.support.waiting import wait_until

# Seconds that the tests' servers allow.
LIMIT = 2.0
# Two equal readings with this distance count as the end of a change.
STABLE_S = 0.3
RESET = b"\1\0\0\0\0\0\0\0"


def pause_client(seconds: float) -> None:
    """Let a client do nothing for `seconds`.

    Real time: the server judges by the clock whether a client is too slow, so that a slow client has to be slow.
    """
    time.sleep(seconds)


def gone(client: socket.socket) -> bool:
    """Return whether the server has closed the connection; data that it sent before is dropped."""
    client.setblocking(False)
    try:
        while client.recv(2**20):
            pass
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def only_ours(echo: Echo) -> bool:
    """Return whether the connection of this request is the only one, and its request the only one."""
    state = echo.get("/state")
    return state["connections"] == 1 and state["requests"] <= 2


def wait_until_only_ours(echo: Echo) -> None:
    """Wait until the server has forgotten all clients."""
    wait_until(lambda: only_ours(echo), poll_s=0.05, explain=lambda: echo.get("/state"))


def wait_until_read(echo: Echo, count: int) -> None:
    """Wait until the server has accepted `count` connections and has read the data that they sent before this call."""
    wait_until(lambda: echo.get("/state")["connections"] > count, poll_s=0.05)
    # The loop reads from all connections in turn: a request that comes later is read later.
    for _ in range(2):
        echo.get("/state")


def stable_value(read: Callable[[], int]) -> int:
    """Return `read()` when two readings in a row are equal."""
    values = [-1]

    def is_stable() -> bool:
        values.append(read())
        return values[-1] == values[-2]

    wait_until(is_stable, poll_s=STABLE_S)
    return values[-1]


def close_all(clients: list[socket.socket], reset: bool) -> None:
    """Close the connections, with a reset in place of an end if `reset`."""
    for client in clients:
        if reset:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        client.close()


def trickle(*clients: socket.socket) -> None:
    """Send byte for byte from all clients until the server has closed each connection."""
    open_ones = set(clients)

    def are_cut() -> bool:
        pause_client(0.1)
        for client in list(open_ones):
            with suppress(BlockingIOError):
                if gone(client) or not _send(client, b"x"):
                    open_ones.discard(client)
        return not open_ones

    assert wait_until(are_cut, poll_s=0) > LIMIT - 1


def _send(client: socket.socket, byte: bytes) -> bool:
    """Return whether the connection took the byte."""
    try:
        client.sendall(byte)
    except ConnectionError:
        return False
    return True
