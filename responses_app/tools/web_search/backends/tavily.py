"""Tavily: its search API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from responses_app.tools.web_search.backends.base import SearchContext, SearchResult
from responses_app.tools.web_search.backends.http import ApiRequest

MAX_RESULTS = 20


class TavilyApi:
    """Search API of Tavily: https://docs.tavily.com/documentation/api-reference/endpoint/search."""

    name = "Tavily"

    def request(self, query: str, context: SearchContext, key: str) -> ApiRequest:
        """Build the request of a search. Tavily takes names of countries, not codes, so the location is not sent."""
        body: dict[str, Any] = {
            "query": query,
            "search_depth": "basic",
            "max_results": min(context.max_results, MAX_RESULTS),
            "include_answer": False,
            "include_raw_content": False,
        }
        if context.domains.allowed:
            body["include_domains"] = list(context.domains.allowed)
        if context.domains.blocked:
            body["exclude_domains"] = list(context.domains.blocked)
        return ApiRequest("/search", body=body, headers={"Authorization": f"Bearer {key}"})

    def results(self, body: Mapping[str, Any]) -> list[SearchResult]:
        """Return the results of a response."""
        return [
            SearchResult(one["url"], one.get("title") or "", one.get("content") or "", one.get("published_date"))
            for one in body["results"]
        ]
