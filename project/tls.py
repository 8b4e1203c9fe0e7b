"""Settings for proxies, for TLS behind a proxy, and cookie names."""

from __future__ import annotations

import re

from django.core.exceptions import ImproperlyConfigured

from responses_app.access.trusted_proxies import TrustedProxies, parse_networks

TOKEN = re.compile(r"[A-Za-z0-9-]*")


def proxy_header(name: str, tls: bool) -> tuple[str, str] | None:
    """Return Django's SECURE_PROXY_SSL_HEADER for a header such as X-Forwarded-Proto. Raises ImproperlyConfigured."""
    if not name:
        return None
    if not TOKEN.fullmatch(name):
        raise ImproperlyConfigured(f"RESPONSES_TLS_HEADER must be the name of a header such as X-Forwarded-Proto, not {name!r}")
    if not tls:
        raise ImproperlyConfigured("RESPONSES_TLS_HEADER is for a server behind TLS: set RESPONSES_TLS=True, or neither")
    return f"HTTP_{name.upper().replace('-', '_')}", "https"


def trusted_proxies(networks: list[str], tls_header: str) -> TrustedProxies:
    """Return the proxies of RESPONSES_TRUSTED_PROXIES. Raises ImproperlyConfigured."""
    try:
        return TrustedProxies(parse_networks(networks), tls_header.lower().encode())
    except ValueError as error:
        raise ImproperlyConfigured(f"RESPONSES_TRUSTED_PROXIES: {error}") from None


def cookie_name(name: str, suffix: str) -> str:
    """Return the name of a cookie. Browsers share cookies between ports, so each server has a suffix. Raises ImproperlyConfigured."""
    if not TOKEN.fullmatch(suffix):
        raise ImproperlyConfigured(f"RESPONSES_COOKIE_SUFFIX must be letters, digits and hyphens, not {suffix!r}")
    return f"{name}-{suffix}" if suffix else name
