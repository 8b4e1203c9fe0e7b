"""Search APIs of the search services: requests and results of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from responses_app.tools.web_search.backends.base import SearchContext, SearchResult
from responses_app.tools.web_search.backends.http import ApiRequest, SearchApi, with_sites

# Results that a service returns at most.
MAX_BRAVE_RESULTS = MAX_TAVILY_RESULTS = 20
MAX_EXA_RESULTS = 100
_LOCATION_HEADERS = {
    "city": "X-Loc-City",
    "region": "X-Loc-State-Name",
    "country": "X-Loc-Country",
    "timezone": "X-Loc-Timezone",
}


class SearxngApi:
    """Search API of SearXNG: https://docs.searxng.org/dev/search_api.html. The format `json` must be enabled in its settings."""

    name = "SearXNG"

    def request(self, query: str, context: SearchContext, key: str) -> ApiRequest:
        """Build the request of a search; a key is sent as bearer token, for a proxy in front of the instance."""
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        return ApiRequest(
            "/search", {"q": with_sites(query, context), "format": "json", "categories": "general"}, headers=headers
        )

    def results(self, body: Mapping[str, Any]) -> list[SearchResult]:
        """Return the results of a response."""
        return [
            SearchResult(one["url"], one.get("title") or "", one.get("content") or "", one.get("publishedDate"))
            for one in body["results"]
            if one.get("url")
        ]


class BraveApi:
    """Web search API of Brave: https://api-dashboard.search.brave.com/app/documentation/web-search."""

    name = "Brave"

    def request(self, query: str, context: SearchContext, key: str) -> ApiRequest:
        """Build the request of a search; the location of the user becomes headers."""
        params = {
            "q": with_sites(query, context),
            "count": str(min(context.max_results, MAX_BRAVE_RESULTS)),
            "text_decorations": "false",
            "result_filter": "web",
        }
        return ApiRequest("/web/search", params, headers={"X-Subscription-Token": key, **_location_headers(context)})

    def results(self, body: Mapping[str, Any]) -> list[SearchResult]:
        """Return the results of a response; a response without matches has no key `web`."""
        return [
            SearchResult(
                one["url"],
                one.get("title") or "",
                " ".join([one.get("description") or "", *(one.get("extra_snippets") or [])]),
                one.get("page_age") or one.get("age"),
            )
            for one in (body.get("web") or {}).get("results", [])
        ]


def _location_headers(context: SearchContext) -> dict[str, str]:
    """Return the headers of the user's location, for the values that a header can carry."""
    if context.location is None:
        return {}
    values = {header: getattr(context.location, name) for name, header in _LOCATION_HEADERS.items()}
    return {header: value for header, value in values.items() if value and value.isascii() and value.isprintable()}


class TavilyApi:
    """Search API of Tavily: https://docs.tavily.com/documentation/api-reference/endpoint/search."""

    name = "Tavily"

    def request(self, query: str, context: SearchContext, key: str) -> ApiRequest:
        """Build the request of a search. Tavily takes names of countries, not codes, so the location is not sent."""
        body: dict[str, Any] = {
            "query": query,
            "search_depth": "basic",
            "max_results": min(context.max_results, MAX_TAVILY_RESULTS),
            "include_answer": False,
            "include_raw_content": False,
        }
        if context.domains.allowed_hosts:
            body["include_domains"] = list(context.domains.allowed_hosts)
        if context.domains.blocked_hosts:
            body["exclude_domains"] = list(context.domains.blocked_hosts)
        return ApiRequest("/search", body=body, headers={"Authorization": f"Bearer {key}"})

    def results(self, body: Mapping[str, Any]) -> list[SearchResult]:
        """Return the results of a response."""
        return [
            SearchResult(one["url"], one.get("title") or "", one.get("content") or "", one.get("published_date"))
            for one in body["results"]
        ]


class ExaApi:
    """Search API of Exa: https://docs.exa.ai/reference/search."""

    name = "Exa"

    def request(self, query: str, context: SearchContext, key: str) -> ApiRequest:
        """Build the request of a search, with highlights of the pages as snippets."""
        body: dict[str, Any] = {
            "query": query,
            "type": "auto",
            "numResults": min(context.max_results, MAX_EXA_RESULTS),
            "contents": {"highlights": True},
        }
        if context.domains.allowed_hosts:
            body["includeDomains"] = list(context.domains.allowed_hosts)
        elif context.domains.blocked_hosts:
            body["excludeDomains"] = list(context.domains.blocked_hosts)
        if context.location is not None and context.location.country:
            body["userLocation"] = context.location.country
        return ApiRequest("/search", body=body, headers={"x-api-key": key})

    def results(self, body: Mapping[str, Any]) -> list[SearchResult]:
        """Return the results of a response."""
        return [
            SearchResult(
                one["url"],
                one.get("title") or "",
                " … ".join(one.get("highlights") or [one.get("summary") or one.get("text") or ""]),
                one.get("publishedDate"),
            )
            for one in body["results"]
        ]


APIS: Mapping[str, SearchApi] = {"searxng": SearxngApi(), "brave": BraveApi(), "tavily": TavilyApi(), "exa": ExaApi()}
