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


def certificate_problem(error: BaseException | None) -> str | None:
    """Return why the certificate of the server was not accepted, without the host; None for another error."""
    while error is not None and not isinstance(error, ssl.SSLCertVerificationError):
        error = error.__cause__ or error.__context__
    return None if error is None else error.verify_message.partition(",")[0].rstrip(".")
