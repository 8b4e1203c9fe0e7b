"""Listening addresses, checked before the slow steps of a start, and addresses for clients."""

from __future__ import annotations

import errno
import socket

REASONS = {
    errno.EADDRINUSE: "another program listens there already; choose another --port or stop it",
    errno.EACCES: "ports below 1024 need more rights; choose another --port",
    errno.EADDRNOTAVAIL: "this machine has no such address; choose another --host",
}


class CannotListen(Exception):
    """Address that is in use, forbidden or not local."""


def check(host: str, port: int) -> None:
    """Check that the address can be bound. Raises CannotListen."""
    reserve(host, port).close()


def reserve(host: str, port: int = 0) -> socket.socket:
    """Return a socket bound to the address, or to a free port, that does not listen. Raises CannotListen.

    While the socket is open, the kernel assigns the port to no other program that requests any port. A program that requests
    this port may listen, as the reserving socket accepts no connections.
    """
    try:
        family, kind, proto, _, address = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        probe = socket.socket(family, kind, proto)
        try:
            # As the server does: closing connections do not block the port.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
        except OSError:
            probe.close()
            raise
    except OSError as error:
        reason = REASONS.get(error.errno or 0, error.strerror or str(error))
        raise CannotListen(f"cannot listen on {host}:{port}: {reason}") from None
    return probe


def reachable(host: str) -> str:
    """Return the host under which clients on this machine reach a server that listens on `host`."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(host, host)  # noqa: S104


def address(host: str, port: int) -> str:
    """Return `host:port` for clients on this machine."""
    host = reachable(host)
    return f"{f'[{host}]' if ':' in host and not host.startswith('[') else host}:{port}"
