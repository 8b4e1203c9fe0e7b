"""Page fetcher: public addresses only, each redirect checked, within limits."""

from __future__ import annotations

import asyncio
import logging
import re
import ssl
from collections.abc import Collection
from dataclasses import dataclass, field

import httpx2

from responses_app.outbound_http.addresses import Resolve, is_listed, resolve
from responses_app.outbound_http.pinned_transport import MIN_REFUSAL_S, BodyLimits, PinnedTransport, ResponseRefused
from responses_app.tools.web_search.domains import DomainFilter
from responses_app.tools.web_search.pages.page import PageFailed

logger = logging.getLogger("responses.tools")

LIMIT_S = 20.0  # Time limit of a page, with all redirects.
CONNECT_S = 5.0
MAX_BYTES = 8 * 1024 * 1024
MAX_REDIRECTS = 5
MAX_URL_LENGTH = 4096
MEDIA_TYPES = frozenset(
    {
        "application/json",
        "application/pdf",
        "application/xhtml+xml",
        "application/xml",
        "application/rss+xml",
        "application/atom+xml",
    }
)
UNREACHABLE = "The page cannot be reached: its host is not on the public internet, or does not answer in time."
_MEDIA_TYPE = re.compile(r"[a-z]{1,20}/[a-z0-9.+-]{1,60}")
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_HEADERS = {
    "User-Agent": "Verbatim",
    "Accept": "text/html,application/xhtml+xml,text/plain;q=0.9,text/*;q=0.8,application/json;q=0.8,*/*;q=0.1",
    "Accept-Language": "en,*;q=0.5",
}


@dataclass(frozen=True, slots=True)
class FetchedPage:
    """Response of a page, with its address behind all redirects."""

    url: str
    media_type: str
    charset: str
    data: bytes


@dataclass(frozen=True, slots=True)
class PageFetcher:
    """Fetcher of pages whose domains `domains` allows. `internal_hosts` may have internal addresses and may be read with http.

    `ssl_context` has the trusted certificates; None for the default ones.
    """

    internal_hosts: Collection[str] = ()
    domains: DomainFilter = field(default_factory=DomainFilter)
    resolve: Resolve = resolve
    ssl_context: ssl.SSLContext | None = None
    limit_s: float = LIMIT_S
    max_bytes: int = MAX_BYTES
    min_refusal_s: float = MIN_REFUSAL_S

    async def fetch(self, url: str) -> FetchedPage:
        """Fetch the page at `url`. Raises PageFailed."""
        try:
            async with asyncio.timeout(self.limit_s):
                return await self._follow(self._check(url))
        except ResponseRefused as error:
            raise PageFailed(f"The page cannot be read: {error}.") from error
        except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError, TimeoutError, OSError, UnicodeError) as error:
            logger.info("page %s: %s", url[:200], type(error).__name__)
            raise PageFailed(UNREACHABLE) from error

    async def _follow(self, url: httpx2.URL) -> FetchedPage:
        for _ in range(MAX_REDIRECTS + 1):
            fetched_page = await self._request(url)
            if isinstance(fetched_page, FetchedPage):
                return fetched_page
            url = self._check(str(url.join(fetched_page)))
        raise PageFailed(f"The page was redirected more than {MAX_REDIRECTS} times.")

    def _check(self, url: str) -> httpx2.URL:
        """Parse a URL, and replace http by https for hosts on the public internet. Raises PageFailed."""
        try:
            parsed = httpx2.URL(url) if len(url) <= MAX_URL_LENGTH else None
        except (httpx2.InvalidURL, ValueError, TypeError):
            parsed = None
        if parsed is None or parsed.scheme not in ("http", "https") or not parsed.host or parsed.userinfo:
            raise PageFailed("The address is not a valid http or https URL.")
        if not self.domains.allows(str(parsed)):
            raise PageFailed(f"The request does not allow pages of '{parsed.host[:100]}'.")
        is_internal = is_listed(parsed.host, parsed.port or 80, self.internal_hosts)
        return parsed.copy_with(scheme="https") if parsed.scheme == "http" and not is_internal else parsed

    async def _request(self, url: httpx2.URL) -> FetchedPage | str:
        """Return the page, or the location of a redirect. A transport serves a single origin, so that each hop has its own."""
        transport = PinnedTransport(
            self.internal_hosts,
            resolve=self.resolve,
            ssl_context=self.ssl_context,
            limits=BodyLimits(self.max_bytes, self.max_bytes),
            min_refusal_s=self.min_refusal_s,
        )
        timeout = httpx2.Timeout(self.limit_s, connect=CONNECT_S)
        async with (
            httpx2.AsyncClient(transport=transport, trust_env=False, follow_redirects=False, timeout=timeout) as client,
            client.stream("GET", url, headers=_HEADERS) as response,
        ):
            if response.status_code in _REDIRECTS and "location" in response.headers:
                return response.headers["location"]
            if response.status_code != 200:
                raise PageFailed(f"The page cannot be read: its host answered with HTTP status {response.status_code}.")
            return await self._read(url, response)

    async def _read(self, url: httpx2.URL, response: httpx2.Response) -> FetchedPage:
        media_type = (response.headers.get("content-type") or "text/html").partition(";")[0].strip().lower()
        if not (media_type.startswith("text/") or media_type in MEDIA_TYPES):
            # The name of the type is text of the page's host, which only a known form makes harmless.
            shown = f" '{media_type}'" if _MEDIA_TYPE.fullmatch(media_type) else ""
            raise PageFailed(f"The type{shown} of the page is not supported.")
        return FetchedPage(str(url), media_type, response.charset_encoding or "", await response.aread())
