"""Message framing between pool and worker process: a header of fixed length, then the payload."""

from __future__ import annotations

import socket
import struct
import time

# A request: CPU seconds, then the length of the payload. A reply: its kind, then the length.
HEADER = struct.Struct(">IQ")
RESULT, EXCEPTION, READY = 0, 1, 2
CHUNK_BYTES = 1 << 20


class ConnectionClosed(OSError):
    """The peer has closed the connection."""


def send(connection: socket.socket, number: int, payload: bytes, deadline: float | None = None) -> None:
    """Send a message. Raises OSError, and TimeoutError after the deadline (by `time.monotonic`)."""
    for data in (HEADER.pack(number, len(payload)), payload):
        view = memoryview(data)
        while view:
            _set_timeout(connection, deadline)
            view = view[connection.send(view[:CHUNK_BYTES]) :]


def receive(connection: socket.socket, deadline: float | None = None) -> tuple[int, bytes]:
    """Receive a message. Raises OSError, and TimeoutError after the deadline."""
    number, length = HEADER.unpack(_receive_exactly(connection, HEADER.size, deadline))
    return number, _receive_exactly(connection, length, deadline)


def _receive_exactly(connection: socket.socket, length: int, deadline: float | None) -> bytes:
    data = bytearray()
    while len(data) < length:
        _set_timeout(connection, deadline)
        part = connection.recv(min(length - len(data), CHUNK_BYTES))
        if not part:
            raise ConnectionClosed("the connection was closed")
        data += part
    return bytes(data)


def _set_timeout(connection: socket.socket, deadline: float | None) -> None:
    if deadline is None:
        return
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    connection.settimeout(left)
