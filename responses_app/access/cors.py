"""Cross-origin resource sharing (CORS): the origins of browser apps that may call the API, and the headers of answers."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from responses_app.utils.url_prefix import local_path

# Paths of the API. Pages, `/health` and the admin allow no other origin.
PATHS: Final = ("/v1/", "/openresponses/v1/")
METHODS: Final = b"GET, POST, DELETE"
# Headers of answers that scripts may read besides the few that browsers always show.
EXPOSED: Final = (
    b"anthropic-ratelimit-requests-limit, anthropic-ratelimit-requests-remaining, anthropic-ratelimit-requests-reset, "
    b"anthropic-ratelimit-tokens-limit, anthropic-ratelimit-tokens-remaining, anthropic-ratelimit-tokens-reset, "
    b"openai-poll-after-ms, openai-processing-ms, openai-version, request-id, retry-after, x-ratelimit-limit-requests, "
    b"x-ratelimit-limit-tokens, x-ratelimit-remaining-requests, x-ratelimit-remaining-tokens, "
    b"x-ratelimit-reset-requests, x-ratelimit-reset-tokens, x-request-id, x-should-retry"
)
# Seconds that a browser may keep the answer to a preflight; Chromium's maximum.
MAX_AGE_S: Final = 7200
# Names of headers, separated by commas (RFC 9110, section 5.6.2).
_NAMES: Final = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+(?:[ \t]*,[ \t]*[!#$%&'*+\-.^_`|~0-9A-Za-z]+)*")
_ORIGIN: Final = re.compile(r"[a-z][a-z0-9+.-]*://(?:[a-z0-9_.-]+|\[[0-9a-f:.]+\])(?::[1-9][0-9]{0,4})?")
_DEFAULT_PORTS: Final = {"http": ":80", "https": ":443"}

Header = tuple[bytes, bytes]


@dataclass(frozen=True, slots=True)
class CorsPolicy:
    """Origins whose scripts may call the API. Without origins no header is sent."""

    origins: frozenset[str] = frozenset()

    def covers(self, path: str) -> bool:
        """Return True if answers of `path` name the allowed origins."""
        return bool(self.origins) and local_path(path).startswith(PATHS)

    def headers(self, path: str, origin: str) -> list[Header]:
        """Return the CORS headers of an answer to a request from `origin`, which is empty outside of browsers.

        `Access-Control-Allow-Credentials` is never sent: the API reads no cookies.
        """
        if not self.covers(path):
            return []
        vary = (b"vary", b"Origin")
        if origin not in self.origins:
            return [vary]
        return [vary, (b"access-control-allow-origin", origin.encode()), (b"access-control-expose-headers", EXPOSED)]

    def preflight_headers(self, path: str, origin: str, names: bytes) -> list[Header]:
        """Return the headers of the answer to a preflight; `names` are the header names that the browser asks for."""
        headers = [*self.headers(path, origin)[:2], (b"access-control-allow-methods", METHODS)]
        if _NAMES.fullmatch(names):
            headers.append((b"access-control-allow-headers", names))
        return [*headers, (b"access-control-max-age", b"%d" % MAX_AGE_S)]

    def socket_problem(self, origin: str, host: str) -> str | None:
        """Return why a page of `origin` may open no WebSocket; None if allowed, without an origin, or if `host` is its own."""
        if not self.origins or not origin or origin in self.origins or urlsplit(origin).netloc == host.lower():
            return None
        return not_allowed(origin)


def not_allowed(origin: str) -> str:
    """Return the error message for an origin that is not allowed."""
    return f"The origin '{origin[:200]}' may not call this server. The operator allows origins with RESPONSES_CORS_ORIGINS."


def parse_origins(origins: Iterable[str]) -> frozenset[str]:
    """Return the origins of a setting as browsers send them. Raises ValueError for anything but an exact origin."""
    return frozenset(map(_checked, origins))


def _checked(origin: str) -> str:
    if origin in ("*", "null"):
        raise ValueError(f"{origin!r} would allow pages of unknown origin; list each origin, as https://app.example.com")
    scheme = origin.partition("://")[0]
    if not _ORIGIN.fullmatch(origin):
        raise ValueError(
            f"{origin!r} must be scheme://host or scheme://host:port in small letters, without a path or a final slash"
        )
    if scheme in _DEFAULT_PORTS and origin.endswith(_DEFAULT_PORTS[scheme]):
        raise ValueError(f"{origin!r} names the default port, which browsers leave out")
    return origin
