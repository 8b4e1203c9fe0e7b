"""Network addresses not allowed for fetching, in every notation."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responses_app.outbound_http.addresses import is_public

# RFC 6890, and special addresses of cloud providers.
INTERNAL = [
    *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24"),
    *("192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24"),
    *("224.0.0.0/4", "240.0.0.0/4", "168.63.129.16/32"),
]
# IPv4 in IPv6: mapped, compatible, translated, NAT64, 6to4.
WRAPS = ("::ffff:{:x}:{:x}", "::{:x}:{:x}", "::ffff:0:{:x}:{:x}", "64:ff9b::{:x}:{:x}", "2002:{:x}:{:x}::1")
inside = (
    st.sampled_from(INTERNAL)
    .map(IPv4Network)
    .flatmap(lambda net: st.integers(0, net.num_addresses - 1).map(lambda at: net[at]))
)


def wrapped(form: str, address: IPv4Address) -> str:
    """Embed the address in an IPv6 address."""
    return form.format(int(address) >> 16, int(address) & 0xFFFF)


@given(inside)
def test_internal_networks_are_refused(address: IPv4Address) -> None:
    assert not is_public(str(address))


@given(st.one_of(inside, st.ip_addresses(v=4)), st.sampled_from(WRAPS))
def test_ipv6_around_an_address_changes_nothing(address: IPv4Address, form: str) -> None:
    assert is_public(wrapped(form, address)) == is_public(str(address))


@given(st.ip_addresses(v=4))
def test_nothing_is_public_that_python_calls_anything_else(address: IPv4Address) -> None:
    if is_public(str(address)):
        odd = (address.is_loopback, address.is_link_local, address.is_multicast, address.is_unspecified, address.is_reserved)
        assert (address.is_global, any(odd)) == (True, False)


@pytest.mark.parametrize(
    "address",
    [
        *("::1", "::", "fe80::1", "fe80::1%eth0", "fc00::1", "fd00:ec2::254", "fec0::1", "ff02::1", "2001:db8::1", "100::1"),
        *("2001::1", "64:ff9b:1::1", "5f00::1", "", "localhost", "0x7f.1", "2130706433", "127.1", "1.1.1.1 "),
    ],
)
def test_special_addresses_are_refused(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", ["1.1.1.1", "8.8.8.8", "93.184.215.14", "172.32.0.1", "2606:4700::1111", "::ffff:8.8.8.8"])
def test_public_addresses_are_accepted(address: str) -> None:
    assert is_public(address)
    assert ip_address(address)
