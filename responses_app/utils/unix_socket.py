"""Unix sockets at paths of any length: the kernel allows 107 bytes for an address."""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from pathlib import Path

MAX_PATH_BYTES = 107


def listen(path: Path) -> socket.socket:
    """Return a listening socket with mode 0600, which replaces a socket of an earlier process. Raises OSError."""
    with suppress(FileNotFoundError):
        path.unlink()
    listening = socket.socket(socket.AF_UNIX)
    folder = os.open(path.parent, os.O_PATH)
    mask = os.umask(0o177)
    try:
        listening.bind(f"/proc/self/fd/{folder}/{path.name}")
    finally:
        os.umask(mask)
        os.close(folder)
    listening.listen(128)
    return listening


def connectable(path: str) -> str:
    """Return a name of the socket that fits into an address. The folder of a long path stays open in this process."""
    if len(os.fsencode(path)) <= MAX_PATH_BYTES:
        return path
    folder = os.open(os.path.dirname(path), os.O_PATH)
    return f"/proc/self/fd/{folder}/{os.path.basename(path)}"
