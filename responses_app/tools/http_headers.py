"""HTTP headers for MCP servers: checks of names, values and sizes."""

from __future__ import annotations

import re
from collections.abc import Mapping

MAX_HEADERS = 32
MAX_HEADER_BYTES = 8192
# RFC 9110, section 5.6.2: characters of a token.
TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
# RFC 9110, section 5.5: visible ASCII with spaces and tabs between.
VALUE = re.compile(r"[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?|")
# Headers of the connection, of the body, and of the MCP transport, which the client sets.
RESERVED = frozenset(
    {
        "accept",
        "accept-encoding",
        "connection",
        "content-encoding",
        "content-length",
        "content-type",
        "expect",
        "forwarded",
        "host",
        "keep-alive",
        "last-event-id",
        "mcp-method",
        "mcp-name",
        "mcp-protocol-version",
        "mcp-session-id",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)


def header_problem(name: str, value: str) -> str | None:
    """Return the reason why a header cannot be sent, without the value; None for a header that can."""
    if not TOKEN.fullmatch(name):
        return "the name of a header may contain letters, digits and !#$%&'*+-.^_`|~ only"
    if name.lower() == "authorization":
        return "use the field 'authorization' instead of this header"
    if name.lower() in RESERVED:
        return "the server sets this header itself"
    return value_problem(value)


def value_problem(value: str) -> str | None:
    """Return the reason why a header's value cannot be sent; None for a value that can."""
    if not VALUE.fullmatch(value):
        return "the value of a header may contain visible ASCII characters, with spaces and tabs between them, only"
    return None


def size_problem(headers: Mapping[str, str]) -> str | None:
    """Return the reason why `headers` are too many or too long; None for headers within the limits."""
    if len(headers) > MAX_HEADERS:
        return f"at most {MAX_HEADERS} headers are allowed, not {len(headers)}"
    if len({name.lower() for name in headers}) < len(headers):
        return "two headers have the same name"
    size = sum(len(name) + len(value) for name, value in headers.items())
    if size > MAX_HEADER_BYTES:
        return f"names and values may have {MAX_HEADER_BYTES} bytes together, not {size}"
    return None


def bearer_header(authorization: str) -> dict[str, str]:
    """Build the `Authorization` header of an access token. A value that begins with `Bearer ` or `Basic ` is not changed."""
    has_scheme = authorization.lower().startswith(("bearer ", "basic "))
    return {"Authorization": authorization if has_scheme else f"Bearer {authorization}"}
