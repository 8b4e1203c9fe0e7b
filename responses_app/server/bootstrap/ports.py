"""Listening addresses, checked before the slow steps of a start, and addresses for clients."""

from __future__ import annotations

import errno
import os
import socket

REASONS = {
    errno.EADDRINUSE: "another program listens there already; choose another --port or stop it",
    errno.EACCES: "ports below 1024 need more rights; choose another --port",
    errno.EADDRNOTAVAIL: "this machine has no such address; choose another --host",
}
UNKNOWN_HOST = "--host takes an address of this machine without a port or brackets, such as 127.0.0.1, 0.0.0.0 or ::"

# An empty address would be that of all networks.
EMPTY_HOST = "the address is empty: give one of this machine, such as 127.0.0.1; 0.0.0.0 and :: are all addresses"


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
    except UnicodeError:
        raise CannotListen(f"cannot listen on {host}: a part of the name is empty or too long; {UNKNOWN_HOST}") from None
    except OSError as error:
        raise CannotListen(_describe(host, port, error)) from None
    return probe


def start_listening(descriptor: int, backlog: int) -> None:
    """Start listening on a reserved socket; until then connections are refused. Raises CannotListen."""
    with socket.socket(fileno=os.dup(descriptor)) as shared:
        host, port = shared.getsockname()[:2]
        try:
            shared.listen(backlog)
        except OSError as error:
            raise CannotListen(_describe(host, port, error)) from None


def reachable(host: str) -> str:
    """Return the host under which clients on this machine reach a server that listens on `host`."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(host, host)  # noqa: S104


def address(host: str, port: int) -> str:
    """Return `host:port` for clients on this machine."""
    host = reachable(host)
    return f"{f'[{host}]' if ':' in host and not host.startswith('[') else host}:{port}"


def _describe(host: str, port: int, error: OSError) -> str:
    reason = error.strerror or str(error)
    if isinstance(error, socket.gaierror):
        return f"cannot listen on {host}: {reason}; {UNKNOWN_HOST}"
    if error.errno == errno.EINVAL and host.lower().startswith("fe80:"):
        reason = f"a link-local address needs its interface, as in {host}%eth0"
    shown = f"[{host}]" if ":" in host else host
    return f"cannot listen on {shown}:{port}: {REASONS.get(error.errno or 0, reason)}"
