"""Interface of the search back ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from responses_app.tools.web_search.domains import DomainFilter

MAX_QUERY_LENGTH = 400


class SearchFailed(Exception):
    """The back end gave no results because of a failure. The message is for the model and contains no key."""


class PageMissing(Exception):
    """The back end has no page of this URL."""


@dataclass(frozen=True, slots=True)
class SearchResult:
    """Result of a search. `published` is the date in the form of the back end."""

    url: str
    title: str
    snippet: str = ""
    published: str | None = None


@dataclass(frozen=True, slots=True)
class UserLocation:
    """Approximate location of the user: `country` is a two-letter ISO code, `timezone` an IANA name."""

    city: str | None = None
    region: str | None = None
    country: str | None = None
    timezone: str | None = None


@dataclass(frozen=True, slots=True)
class SearchContext:
    """Conditions of a search: the number of results, the domains, and the location of the user."""

    max_results: int = 10
    domains: DomainFilter = field(default_factory=DomainFilter)
    location: UserLocation | None = None


class SearchBackend(Protocol):
    """Search service."""

    async def search(self, query: str, context: SearchContext) -> Sequence[SearchResult]:
        """Return the results in the order of their rank. Raises SearchFailed."""
        ...


@runtime_checkable
class PageSource(Protocol):
    """Search back end that has the pages of its results."""

    async def read_page(self, url: str) -> tuple[str, bytes]:
        """Return the media type and the bytes of a page. Raises PageMissing."""
        ...
