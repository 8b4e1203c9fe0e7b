"""Addresses of clients behind trusted proxies."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from project.tls import trusted_proxies

PROXIES = trusted_proxies(["10.0.0.0/8", "192.0.2.7", "2001:db8::/32"], "X-Forwarded-Proto")


def scope_of(peer: str, *forwarded: str) -> dict[str, Any]:
    """Return an ASGI scope from `peer` with a header X-Forwarded-For for each of `forwarded`."""
    headers = [(b"x-forwarded-for", value.encode()) for value in forwarded]
    return {"client": [peer, 4711], "headers": [(b"x-forwarded-proto", b"https"), *headers, (b"host", b"h")]}


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        ("10.0.0.1", ("203.0.113.9",), "203.0.113.9"),
        # The left part is written by the client.
        ("10.0.0.1", ("1.1.1.1, 203.0.113.9, 10.2.2.2",), "203.0.113.9"),
        ("10.0.0.1", ("1.1.1.1", "203.0.113.9"), "203.0.113.9"),
        ("10.0.0.1", ("unknown, 10.2.2.2",), "10.2.2.2"),
        ("10.0.0.1", ("203.0.113.9, nonsense",), "10.0.0.1"),
        ("10.0.0.1", ("10.3.3.3, 10.2.2.2",), "10.3.3.3"),
        ("10.0.0.1", ("203.0.113.9:55123",), "203.0.113.9"),
        ("192.0.2.7", ("[2a00::1]:443",), "2a00::1"),
        ("::ffff:10.0.0.1", ("::ffff:203.0.113.9",), "203.0.113.9"),
        ("2001:db8::5", ("203.0.113.9",), "203.0.113.9"),
        ("10.0.0.1", (), "10.0.0.1"),
        ("10.0.0.1", (" , ",), "10.0.0.1"),
    ],
)
def test_the_rightmost_untrusted_address_is_the_client(peer: str, forwarded: tuple[str, ...], client: str) -> None:
    assert PROXIES.resolved(scope_of(peer, *forwarded))["client"][0] == client


def test_a_client_that_is_no_proxy_loses_the_forwarding_headers() -> None:
    resolved = PROXIES.resolved(scope_of("203.0.113.1", "1.1.1.1"))
    assert resolved["client"] == ["203.0.113.1", 4711]
    assert resolved["headers"] == [(b"host", b"h")]


def test_without_networks_the_scope_stays() -> None:
    scope = scope_of("10.0.0.1", "1.1.1.1")
    assert trusted_proxies([], "").resolved(scope) is scope


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("proxy.internal", "'proxy.internal' is not an address or a network such as 10.0.0.0/8"),
        ("10.0.0.0/99", "is not an address or a network"),
        ("10.0.0.1/8", "has bits behind its prefix: write 10.0.0.0/8"),
    ],
)
def test_a_bad_value_is_refused_with_a_sentence(value: str, sentence: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=f"RESPONSES_TRUSTED_PROXIES: .*{sentence}"):
        trusted_proxies([value], "")


def test_the_transport_resolves_an_address_before_the_body_is_read() -> None:
    assert PROXIES.client_address("10.0.0.1", [b"203.0.113.9, 198.51.100.7"]) == "198.51.100.7"
    assert PROXIES.client_address("203.0.113.1", [b"198.51.100.7"]) == "203.0.113.1"
    assert PROXIES.client_address("10.0.0.1", []) == "10.0.0.1"
