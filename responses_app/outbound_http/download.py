"""Download of a document from a checked address, within limits of size and time."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

import httpx2

from responses_app.outbound_http.addresses import Resolve, is_host, is_listed, resolve
from responses_app.outbound_http.pinned_transport import BodyLimits, PinnedTransport, ResponseRefused

LIMIT_S = 30.0
CONNECT_S = 5.0
MAX_REDIRECTS = 3
MAX_URL_LENGTH = 8192
_HEADERS = {"Accept": "*/*", "User-Agent": "Verbatim"}
UNREACHABLE = "its host is not on the public internet, cannot be reached or does not answer in time"
# Errors of a host that cannot be reached, or does not answer as it should.
REQUEST_ERRORS = (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError, TimeoutError, OSError, UnicodeError)


class DownloadFailed(Exception):
    """No document at the URL; the message has the reason, without details of internal hosts."""


def url_problem(url: str, internal_hosts: Collection[str] = ()) -> str | None:
    """Return why `url` may not be downloaded, without network access, or None."""
    try:
        parsed = httpx2.URL(url) if len(url) <= MAX_URL_LENGTH else None
    except (httpx2.InvalidURL, ValueError, TypeError):
        parsed = None
    if parsed is None or not is_host(parsed.raw_host.decode()) or parsed.userinfo:
        return f"expected an https URL of at most {MAX_URL_LENGTH:,} characters without a user name"
    if parsed.scheme != "https" and not (parsed.scheme == "http" and is_listed(parsed.host, parsed.port or 80, internal_hosts)):
        return "files are downloaded from https URLs only"
    return None


async def download(
    url: str, max_bytes: int, internal_hosts: Collection[str] = (), *, resolve: Resolve = resolve, limit_s: float = LIMIT_S
) -> bytes:
    """Download the bytes at `url`, at most `max_bytes`. Raises DownloadFailed.

    Each redirect is checked as the first URL. Unknown, internal and silent hosts get the same message.
    """
    try:
        async with asyncio.timeout(limit_s):
            for _ in range(MAX_REDIRECTS + 1):
                problem = url_problem(url, internal_hosts)
                if problem is not None:
                    raise DownloadFailed(problem)
                outcome = await _get(url, max_bytes, internal_hosts, resolve)
                if isinstance(outcome, bytes):
                    return outcome
                url = outcome
    except ResponseRefused as error:
        raise DownloadFailed(str(error)) from error
    except REQUEST_ERRORS as error:
        raise DownloadFailed(UNREACHABLE) from error
    raise DownloadFailed(f"it was redirected more than {MAX_REDIRECTS} times")


async def _get(url: str, max_bytes: int, internal_hosts: Collection[str], resolve: Resolve) -> bytes | str:
    """Return the body, or the address of a redirect. Raises DownloadFailed and the errors of httpx2."""
    transport = PinnedTransport(internal_hosts, resolve=resolve, limits=BodyLimits(max_bytes, max_bytes))
    timeout = httpx2.Timeout(LIMIT_S, connect=CONNECT_S)
    async with (
        httpx2.AsyncClient(transport=transport, trust_env=False, follow_redirects=False, timeout=timeout) as client,
        client.stream("GET", url, headers=_HEADERS) as response,
    ):
        if response.is_redirect and "location" in response.headers:
            return str(response.url.join(response.headers["location"]))
        if response.status_code != httpx2.codes.OK:
            raise DownloadFailed(f"its host answered with HTTP status {response.status_code}")
        return await response.aread()
