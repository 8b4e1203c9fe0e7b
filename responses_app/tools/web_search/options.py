"""Options of a web search tool: from the declaration of the request to the conditions of searches and pages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from responses_app.tools.web_search.backends.base import SearchContext, UserLocation
from responses_app.tools.web_search.domains import DomainFilter

# By `search_context_size`: results of a search, and lines of a page.
_SIZES: Mapping[str, tuple[int, int]] = {"low": (5, 50), "medium": (8, 100), "high": (15, 200)}
_DEFAULT_SIZE = "medium"
_PLACES = ("city", "region", "country")


@dataclass(frozen=True, slots=True)
class WebSearchOptions:
    """Options of the tool: conditions of searches, and lines of a page in a display."""

    context: SearchContext
    lines: int

    @classmethod
    def of(cls, tool: Mapping[str, Any]) -> WebSearchOptions:
        """Read the options of a declared tool."""
        filters, place = tool.get("filters") or {}, tool.get("user_location") or {}
        results, lines = _SIZES.get(str(tool.get("search_context_size")), _SIZES[_DEFAULT_SIZE])
        domains = DomainFilter.of(filters.get("allowed_domains"), filters.get("blocked_domains"))
        location = UserLocation(place.get("city"), place.get("region"), place.get("country"), place.get("timezone"))
        return cls(SearchContext(results, domains, location), lines)

    def describe(self) -> str:
        """Return sentences for the model about the location of the user and the domains; empty without both."""
        location, domains = self.context.location, self.context.domains
        places = [getattr(location, name) for name in _PLACES if location is not None and getattr(location, name)]
        # A country alone is the default of the API, which is no information about the user.
        sentences = [f"The user is near {', '.join(places)}."] if len(places) > 1 or (location and location.city) else []
        if domains.allowed:
            sentences.append(f"Only pages of these domains are available: {', '.join(domains.allowed[:20])}.")
        if domains.blocked:
            sentences.append(f"Pages of these domains are not available: {', '.join(domains.blocked[:20])}.")
        return " ".join(sentences)
