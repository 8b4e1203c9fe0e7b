"""Brave: its web search API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from responses_app.tools.web_search.backends.base import SearchContext, SearchResult
from responses_app.tools.web_search.backends.http import ApiRequest, with_sites

MAX_RESULTS = 20
_LOCATION_HEADERS = {
    "city": "X-Loc-City",
    "region": "X-Loc-State-Name",
    "country": "X-Loc-Country",
    "timezone": "X-Loc-Timezone",
}


class BraveApi:
    """Web search API of Brave: https://api-dashboard.search.brave.com/app/documentation/web-search."""

    name = "Brave"

    def request(self, query: str, context: SearchContext, key: str) -> ApiRequest:
        """Build the request of a search; the location of the user becomes headers."""
        params = {
            "q": with_sites(query, context),
            "count": str(min(context.max_results, MAX_RESULTS)),
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
