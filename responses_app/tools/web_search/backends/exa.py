"""Exa: its search API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from responses_app.tools.web_search.backends.base import SearchContext, SearchResult
from responses_app.tools.web_search.backends.http import ApiRequest

MAX_RESULTS = 100


class ExaApi:
    """Search API of Exa: https://docs.exa.ai/reference/search."""

    name = "Exa"

    def request(self, query: str, context: SearchContext, key: str) -> ApiRequest:
        """Build the request of a search, with highlights of the pages as snippets."""
        body: dict[str, Any] = {
            "query": query,
            "type": "auto",
            "numResults": min(context.max_results, MAX_RESULTS),
            "contents": {"highlights": True},
        }
        if context.domains.allowed:
            body["includeDomains"] = list(context.domains.allowed)
        elif context.domains.blocked:
            body["excludeDomains"] = list(context.domains.blocked)
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
