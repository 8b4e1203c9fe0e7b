"""Whether we will be able to listen, asked before the slow things begin."""

from __future__ import annotations

import errno
import socket

REASONS = {
    errno.EADDRINUSE: "another program listens there already; choose another --port or stop it",
    errno.EACCES: "ports below 1024 need more rights; choose another --port",
    errno.EADDRNOTAVAIL: "this machine has no such address; choose another --host",
}


class CannotListen(Exception):
    """The address is taken, forbidden or not ours."""


def check(host: str, port: int) -> None:
    """Bind to the address and let go again. Raises CannotListen."""
    try:
        family, kind, proto, _, address = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, proto) as probe:
            # As the server will: connections that are still closing do not count.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        reason = REASONS.get(error.errno or 0, error.strerror or str(error))
        raise CannotListen(f"cannot listen on {host}:{port}: {reason}") from None
