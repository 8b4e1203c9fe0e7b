"""Addresses: whether we will be able to listen, asked before the slow things begin, and how clients call them."""

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
    reserve(host, port).close()


def reserve(host: str, port: int = 0) -> socket.socket:
    """A socket that is bound to the address, or to a free port of it, and does not listen. Raises CannotListen.

    As long as it is there the kernel gives the port to nobody who does not ask for it by number; whoever does may listen, as it
    takes no connections itself.
    """
    try:
        family, kind, proto, _, address = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        probe = socket.socket(family, kind, proto)
        try:
            # As the server will: connections that are still closing do not count.
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
    """The host by which a client on this machine reaches whoever listens on `host`."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(host, host)  # noqa: S104


def address(host: str, port: int) -> str:
    """`host:port` as a client on this machine would type it."""
    host = reachable(host)
    return f"{f'[{host}]' if ':' in host and not host.startswith('[') else host}:{port}"
