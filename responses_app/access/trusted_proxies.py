"""Addresses of clients behind trusted proxies: `X-Forwarded-For`, read from the right."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any, Final

FORWARDED_FOR: Final = b"x-forwarded-for"

Address = IPv4Address | IPv6Address


def parse_networks(values: Iterable[str]) -> tuple[IPv4Network | IPv6Network, ...]:
    """Parse addresses and networks such as `10.0.0.0/8`. Raises ValueError with a sentence."""
    return tuple(_network(value) for value in values)


@dataclass(frozen=True, slots=True)
class TrustedProxies:
    """Networks of proxies whose forwarding headers count. `proto_header` is the lower-case name of the header for TLS, or empty."""

    networks: tuple[IPv4Network | IPv6Network, ...] = ()
    proto_header: bytes = b""

    def resolved(self, scope: dict[str, Any]) -> dict[str, Any]:
        """Return the ASGI scope with the client's own address; `scope` itself without networks.

        From any other peer the forwarding headers are dropped, since the client may have written these itself.
        """
        client = scope.get("client")
        if not self.networks or not client:
            return scope
        peer = _parse(client[0])
        if peer is None or not self._is_trusted(peer):
            headers = [pair for pair in scope["headers"] if pair[0] not in {FORWARDED_FOR, self.proto_header}]
            return {**scope, "headers": headers}
        hops = b",".join(value for name, value in scope["headers"] if name == FORWARDED_FOR).decode("latin-1")
        address = self._first_untrusted(peer, hops.split(","))
        return {**scope, "client": [str(address), 0 if address != peer else client[1]]}

    def client_address(self, peer: str, forwarded_for: Iterable[bytes]) -> str:
        """Return the client's own address, given the address of the connection and the values of `X-Forwarded-For`."""
        scope = {"client": [peer, 0], "headers": [(FORWARDED_FOR, value) for value in forwarded_for]}
        return str(self.resolved(scope)["client"][0])

    def _first_untrusted(self, peer: Address, hops: list[str]) -> Address:
        """Return the rightmost address of `hops` that is no trusted proxy; without one, the address farthest left."""
        address = peer
        for hop in reversed(hops):
            parsed = _parse(hop.strip())
            # A proxy that names no address is the last that is known.
            if parsed is None:
                return address
            address = parsed
            if not self._is_trusted(address):
                return address
        return address

    def _is_trusted(self, address: Address) -> bool:
        return any(address in network for network in self.networks)


def _network(value: str) -> IPv4Network | IPv6Network:
    try:
        return ip_network(value)
    except ValueError:
        pass
    try:
        loose = ip_network(value, strict=False)
    except ValueError:
        raise ValueError(f"{value!r} is not an address or a network such as 10.0.0.0/8") from None
    raise ValueError(f"{value!r} has bits behind its prefix: write {loose}, or the address alone")


def _parse(text: str) -> Address | None:
    """Parse an address, also with a port (`192.0.2.1:80`, `[2001:db8::1]:80`); None for anything else."""
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ip_address(text)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address
