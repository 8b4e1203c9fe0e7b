"""Unix sockets at paths of any length: the kernel allows 107 bytes for an address."""

from __future__ import annotations

import errno
import os
import socket
from contextlib import suppress
from pathlib import Path

MAX_PATH_BYTES = 107
CONNECT_LIMIT_S = 2.0


def listen(path: Path) -> socket.socket:
    """Return a listening socket with mode 0600, which replaces a socket of an earlier process, and no other file. Raises OSError.

    The file gets its name when connections are accepted: a process that waits for the file is never refused.
    """
    if os.path.lexists(path) and not path.is_socket():
        raise FileExistsError(errno.EEXIST, "there is another file, which no socket replaces", str(path))
    unfinished = path.with_name(f"{path.name}.new")
    with suppress(FileNotFoundError):
        unfinished.unlink()
    listening = socket.socket(socket.AF_UNIX)
    folder = os.open(path.parent, os.O_PATH)
    mask = os.umask(0o177)
    try:
        listening.bind(f"/proc/self/fd/{folder}/{unfinished.name}")
    finally:
        os.umask(mask)
        os.close(folder)
    listening.listen(128)
    unfinished.rename(path)
    return listening


def connectable(path: str) -> str:
    """Return a name of the socket that fits into an address. The folder of a long path stays open in this process."""
    if len(os.fsencode(path)) <= MAX_PATH_BYTES:
        return path
    folder = os.open(os.path.dirname(path), os.O_PATH)
    return f"/proc/self/fd/{folder}/{os.path.basename(path)}"


def is_listening(path: str) -> bool:
    """Return whether a process accepts connections at `path`."""
    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(CONNECT_LIMIT_S)
        try:
            link.connect(connectable(path))
        except OSError:
            return False
    return True
