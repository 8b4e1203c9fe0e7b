"""Failure of a runner that ends at every start: a file beside its socket, which the starter writes and other processes read."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

from responses_app.sandbox.base import SandboxUnavailable
from responses_app.sandbox.messages import encode_error

SUFFIX = ".failure"


def read(folder: Path) -> str:
    """Return why a runner with a socket in the folder does not start; empty if each does, or has not been needed."""
    with suppress(OSError):
        for file in sorted(folder.glob(f"*{SUFFIX}")):
            return file.read_text(errors="replace")
    return ""


def write(socket: Path, reason: str) -> None:
    """Write the reason. A disk that takes no file is no error: calls name the reason too."""
    with suppress(OSError):
        _file(socket).write_text(reason)


def clear(socket: Path) -> None:
    """Remove the reason."""
    with suppress(OSError):
        _file(socket).unlink()


def refusal(reason: str) -> bytes:
    """Return the HTTP answer to a call that no runner can take."""
    status, error = encode_error(SandboxUnavailable(f"the sandbox does not start ({reason})"))
    body = json.dumps(error).encode()
    head = f"HTTP/1.1 {status} Service Unavailable\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body


def _file(socket: Path) -> Path:
    return socket.with_name(socket.name + SUFFIX)
