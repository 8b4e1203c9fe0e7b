"""Check of network addresses: requests of users reach the public internet only."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Collection, Sequence
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TypeAlias

Resolve: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]
# Globally routable, but answered by the cloud provider with the credentials of the machine.
_METADATA = frozenset({ip_address("168.63.129.16"), ip_address("192.0.0.192")})
# Missing in `is_global` of some Python releases: IETF assignments, 6to4 relays, discard-only and site-local networks.
_NOT_PUBLIC = tuple(map(ip_network, ("192.0.0.0/24", "192.88.99.0/24", "100::/64", "fec0::/10", "64:ff9b:1::/48", "5f00::/16")))
# IPv6 networks with an embedded IPv4 address: the prefix, and the number of bits after the IPv4 address.
_EMBEDDED: tuple[tuple[IPv6Network, int], ...] = (
    (IPv6Network("::/96"), 0),
    (IPv6Network("::ffff:0:0/96"), 0),
    (IPv6Network("::ffff:0:0:0/96"), 0),
    (IPv6Network("64:ff9b::/96"), 0),
    (IPv6Network("2002::/16"), 80),
)
# RFC 1035: characters of a name, which may end with a dot, and of a part of it.
MAX_HOST = 254
MAX_LABEL = 63


class Unreachable(Exception):
    """The host has no address or an internal address, so no request is sent. The message is for the log only."""


async def resolve(host: str, port: int) -> Sequence[str]:
    """Resolve a host name to numeric addresses. Raises OSError."""
    result = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(entry[4][0]) for entry in result]


async def resolve_checked(host: str, port: int, *, allow_internal: bool, resolve: Resolve = resolve) -> list[str]:
    """Resolve `host` to the addresses, all of which are public unless `allow_internal`. Raises Unreachable and OSError."""
    addresses = list(dict.fromkeys(await resolve(host, port)))
    if not addresses:
        raise Unreachable("its host has no address")
    if not allow_internal and not all(map(is_public, addresses)):
        raise Unreachable(f"its host '{host}' is not on the public internet")
    return addresses


def is_listed(host: str, port: int, hosts: Collection[str]) -> bool:
    """Return whether `hosts` has the host, as `host` or `host:port`."""
    host = host.lower()
    name = f"[{host}]" if ":" in host else host
    return any(known in hosts for known in (host, name, f"{name}:{port}"))


def is_host(host: str) -> bool:
    """Return whether `host`, in ASCII, has the lengths of a name that DNS can have, or is an IPv6 address."""
    labels = host.removesuffix(".").split(".")
    return ":" in host or (len(host) <= MAX_HOST and all(1 <= len(label) <= MAX_LABEL for label in labels))


def is_public(address: str) -> bool:
    """Return True if the numeric address is on the public internet, in any notation."""
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return False
    return _is_public(parsed)


def _is_public(address: IPv4Address | IPv6Address) -> bool:
    if isinstance(address, IPv6Address):
        # Teredo addresses hide a server and a client address; no public service uses them.
        if address.teredo is not None:
            return False
        inner = _embedded_ipv4(address)
        if inner is not None:
            return _is_public(inner)
    if address in _METADATA or any(address in network for network in _NOT_PUBLIC):
        return False
    return address.is_global and not (
        address.is_multicast or address.is_reserved or address.is_loopback or address.is_link_local
    )


def _embedded_ipv4(address: IPv6Address) -> IPv4Address | None:
    for network, shift in _EMBEDDED:
        if address in network:
            return IPv4Address((int(address) >> shift) & 0xFFFFFFFF)
    return None
