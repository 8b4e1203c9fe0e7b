"""Certificates of other servers: authorities that are trusted, and why a certificate is not accepted."""

from __future__ import annotations

import os
import ssl
from functools import cache
from typing import Final

import httpx2

# For operators.
TRUST: Final = "SSL_CERT_FILE names a file with further authorities to trust"


@cache
def default_ssl_context() -> ssl.SSLContext:
    """Create the default SSL context, which also trusts the authorities of SSL_CERT_FILE. Cached: creation takes milliseconds."""
    context = httpx2.create_ssl_context(trust_env=False)
    if file := os.environ.get("SSL_CERT_FILE"):
        context.load_verify_locations(file)
    return context


def authorities_problem() -> str | None:
    """Return a sentence if SSL_CERT_FILE has no authorities: every connection by TLS would fail. None if it has, or is not set."""
    file = os.environ.get("SSL_CERT_FILE")
    if not file:
        return None
    try:
        ssl.create_default_context(cafile=file)
    except OSError as error:
        reason = "no certificate in PEM" if isinstance(error, ssl.SSLError) else error.strerror
        return f"SSL_CERT_FILE: {file} cannot be used ({reason}): name a file with certificates of authorities, or unset it"
    return None


def certificate_problem(error: BaseException | None) -> str | None:
    """Return why the certificate of the server was not accepted, without the host; None for another error."""
    while error is not None and not isinstance(error, ssl.SSLCertVerificationError):
        error = error.__cause__ or error.__context__
    return None if error is None else error.verify_message.partition(",")[0].rstrip(".")
