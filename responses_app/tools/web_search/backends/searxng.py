"""SearXNG: the JSON format of its search API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from responses_app.tools.web_search.backends.base import SearchContext, SearchResult
from responses_app.tools.web_search.backends.http import ApiRequest, with_sites


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
