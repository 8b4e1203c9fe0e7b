"""Read an HTTP answer from a socket."""

from __future__ import annotations

import json
import socket

MIB = 1024 * 1024


def answer(client: socket.socket) -> tuple[int, dict[str, str], dict[str, object]]:
    """Read a response; return the status, its headers and its error or content."""
    received = b""
    while not received.rstrip().endswith((b"}", b"}\r\n0")):
        chunk = client.recv(65536)
        assert chunk, received
        received += chunk
    head, _, body = received.partition(b"\r\n\r\n")
    status, *lines = head.decode().split("\r\n")
    headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
    content = json.loads(body[body.index(b"{") : body.rindex(b"}") + 1])
    return int(status.split()[1]), headers, content.get("error", content)
