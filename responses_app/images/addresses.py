"""Which network addresses a picture may be fetched from: those of the public internet, and no others."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network

# Public by number, but answered by the cloud that a server runs in: its keys are told there.
_METADATA = frozenset({ip_address("168.63.129.16"), ip_address("192.0.0.192")})
# Not all releases of Python know these: IETF assignments, relays of 6to4, discarded, and what only one site knows.
_CLOSED = tuple(map(ip_network, ("192.0.0.0/24", "192.88.99.0/24", "100::/64", "fec0::/10", "64:ff9b:1::/48", "5f00::/16")))
# IPv4 in the clothes of IPv6: the prefix, and how many bits follow the address.
_WRAPPED: tuple[tuple[IPv6Network, int], ...] = (
    (IPv6Network("::/96"), 0),
    (IPv6Network("::ffff:0:0/96"), 0),
    (IPv6Network("::ffff:0:0:0/96"), 0),
    (IPv6Network("64:ff9b::/96"), 0),
    (IPv6Network("2002::/16"), 80),
)


def is_public(address: str) -> bool:
    """Whether the address, in figures, is one of the public internet, in whichever way it is written."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return False
    return _public(found)


def _public(address: IPv4Address | IPv6Address) -> bool:
    if isinstance(address, IPv6Address):
        # Teredo hides its server and its client, and nobody serves pictures on it.
        if address.teredo is not None:
            return False
        inner = _unwrapped(address)
        if inner is not None:
            return _public(inner)
    if address in _METADATA or any(address in network for network in _CLOSED):
        return False
    return address.is_global and not (
        address.is_multicast or address.is_reserved or address.is_loopback or address.is_link_local
    )


def _unwrapped(address: IPv6Address) -> IPv4Address | None:
    for network, behind in _WRAPPED:
        if address in network:
            return IPv4Address((int(address) >> behind) & 0xFFFFFFFF)
    return None
