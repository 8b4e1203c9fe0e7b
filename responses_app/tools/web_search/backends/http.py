"""Search service over HTTP: the requests of an API, through the pinned transport, with limits and one further attempt."""

from __future__ import annotations

import asyncio
import html
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import httpx2
import orjson

from responses_app.outbound_http.pinned_transport import BodyLimits, PinnedTransport, ResponseRefused
from responses_app.tools.web_search.backends.base import MAX_QUERY_LENGTH, SearchContext, SearchFailed, SearchResult

Pause: TypeAlias = Callable[[float], Awaitable[None]]
MAX_BODY_BYTES = 4 * 1024 * 1024
MAX_SNIPPET = 2000
MAX_TITLE = 300
ATTEMPTS = 2
PAUSE_S = 1.0
MAX_PAUSE_S = 5.0
TIMEOUT_S = 20.0
CONNECT_TIMEOUT_S = 5.0
_TAGS = re.compile(r"<[^<>]{0,200}>")
_HINTS = {
    **dict.fromkeys((301, 302, 307, 308), " Set `url` of RESPONSES_WEB_SEARCH to the address to which it redirects."),
    401: " The key of RESPONSES_WEB_SEARCH is refused.",
    403: " The service refuses access: the key of RESPONSES_WEB_SEARCH, or, for SearXNG, JSON among `search.formats`.",
    429: " The service limits the rate of searches.",
}


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """Request of a search API: a GET with `params`, or a POST with the JSON value `body`."""

    path: str
    params: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, Any] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


class SearchApi(Protocol):
    """Form of requests and results of a search service."""

    name: str

    def request(self, query: str, context: SearchContext, key: str) -> ApiRequest:
        """Build the request of a search."""
        ...

    def results(self, body: Mapping[str, Any]) -> Sequence[SearchResult]:
        """Return the results of a response. Raises KeyError, TypeError and AttributeError for a broken response."""
        ...


class HttpSearchBackend:
    """Search backend over HTTP. The operator chose `url`, so the host may have an internal address."""

    def __init__(self, api: SearchApi, url: str, key: str = "", *, pause: Pause = asyncio.sleep) -> None:
        self._api, self._url, self._key, self._pause = api, url.rstrip("/"), key, pause

    async def search(self, query: str, context: SearchContext) -> list[SearchResult]:
        """Return the results whose domains are allowed. Raises SearchFailed."""
        body = await self._fetch(self._api.request(query[:MAX_QUERY_LENGTH], context, self._key))
        try:
            results = [one for one in map(_plain, self._api.results(orjson.loads(body))) if context.domains.allows(one.url)]
        except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError):
            raise SearchFailed(f"The search service {self._api.name} sent an answer that is not a list of results.") from None
        return results[: context.max_results]

    async def _fetch(self, request: ApiRequest) -> bytes:
        """Return the body of a response with status 200. Raises SearchFailed."""
        transport = PinnedTransport(allow_internal=True, limits=BodyLimits(body=MAX_BODY_BYTES, stream=MAX_BODY_BYTES))
        timeout = httpx2.Timeout(TIMEOUT_S, connect=CONNECT_TIMEOUT_S)
        try:
            async with (
                asyncio.timeout(ATTEMPTS * TIMEOUT_S),
                httpx2.AsyncClient(transport=transport, trust_env=False, follow_redirects=False, timeout=timeout) as client,
            ):
                return await self._attempt(client, request)
        except (httpx2.HTTPError, httpx2.InvalidURL, ResponseRefused, TimeoutError, OSError) as error:
            # No text of the error, which may contain the URL.
            raise SearchFailed(f"The search service {self._api.name} does not answer ({type(error).__name__}).") from None

    async def _attempt(self, client: httpx2.AsyncClient, request: ApiRequest) -> bytes:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                response = await self._send(client, request)
            except httpx2.TransportError:
                if attempt == ATTEMPTS:
                    raise
                await self._pause(PAUSE_S)
                continue
            if response.status_code == 200:
                return response.content
            if attempt == ATTEMPTS or not _is_temporary(response.status_code):
                break
            await self._pause(_pause_s(response))
        hint = _HINTS.get(response.status_code, "")
        raise SearchFailed(f"The search service {self._api.name} answered with HTTP status {response.status_code}.{hint}")

    async def _send(self, client: httpx2.AsyncClient, request: ApiRequest) -> httpx2.Response:
        headers = {"User-Agent": "Verbatim", "Accept": "application/json", **request.headers}
        url = f"{self._url}{request.path}"
        if request.body is None:
            return await client.get(url, params=dict(request.params), headers=headers)
        return await client.post(url, json=dict(request.body), headers=headers)


def with_sites(query: str, context: SearchContext) -> str:
    """Return `query` with the operator `site:` for the domains of the filter, as search engines understand the operator."""
    allowed, blocked = context.domains.allowed_hosts[:10], context.domains.blocked_hosts[:10]
    sites = " OR ".join(f"site:{domain}" for domain in allowed)
    parts = [query, f"({sites})" if len(allowed) > 1 else sites, *(f"-site:{domain}" for domain in blocked)]
    return " ".join(part for part in parts if part)


def _is_temporary(status: int) -> bool:
    return status == 429 or status >= 500


def _pause_s(response: httpx2.Response) -> float:
    """Return the pause of the header `Retry-After` (RFC 9110, section 10.2.3) in seconds, up to MAX_PAUSE_S."""
    value = response.headers.get("retry-after", "")
    return min(float(value), MAX_PAUSE_S) if value.isascii() and value.isdigit() and len(value) < 10 else PAUSE_S


def _plain(result: SearchResult) -> SearchResult:
    """Return `result` with texts of limited length, without HTML tags and line breaks."""
    return SearchResult(
        result.url,
        _plain_text(result.title, MAX_TITLE) or result.url,
        _plain_text(result.snippet, MAX_SNIPPET),
        result.published,
    )


def _plain_text(text: str, max_length: int) -> str:
    return " ".join(html.unescape(_TAGS.sub("", text[: 4 * max_length])).split())[:max_length]
