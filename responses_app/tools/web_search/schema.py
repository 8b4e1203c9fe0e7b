"""Schemas of the web search: the declaration in a request, in both versions of the API, and a call as an input item."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from responses_app.validation.base import Array, CallEnding, Direct, Objects, StrictModel, validate
from responses_app.validation.errors import Loc

_LABEL: Final = "[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?"
# Several `*` would allow patterns that take exponential time.
_PATH: Final = r"(/[^\s?#*]*(\*[^\s?#*]*)?)?"
# A host name, or one with a path, as in the Messages API.
Domain = Annotated[str, Field(max_length=512, pattern=rf"^{_LABEL}(\.{_LABEL})+{_PATH}$")]
Place = Annotated[str, Field(max_length=256)]
MAX_DOMAINS: Final = 100


class SearchLocation(StrictModel):
    """Approximate location of the user of a web search."""

    type: Literal["approximate"] = "approximate"
    city: Place | None = None
    country: Annotated[str, Field(pattern=r"^[A-Za-z]{2}$")] | None = None
    region: Place | None = None
    timezone: Place | None = None


# Location of a user who names none, as in the OpenAI API.
_DEFAULT_LOCATION: Final = SearchLocation(country="US")


class WebSearchFilters(StrictModel):
    """Filters of a web search."""

    allowed_domains: Annotated[Array[Domain], Field(max_length=MAX_DOMAINS)] | None = None
    # No field of the OpenAI API.
    blocked_domains: Annotated[Array[Domain], Field(max_length=MAX_DOMAINS)] | None = None


class SearchOptions(StrictModel):
    """Options that both versions of the web search have."""

    search_content_types: Annotated[Array[Literal["text"]], Field(min_length=1, max_length=1)] | None = None
    search_context_size: Literal["low", "medium", "high"] = "medium"
    user_location: SearchLocation | None = None
    allowed_callers: Direct


class WebSearchPreviewTool(SearchOptions):
    """Web search, in the first version of the API."""

    type: Literal["web_search_preview", "web_search_preview_2025_03_11"]


class WebSearchTool(SearchOptions):
    """Web search."""

    type: Literal["web_search", "web_search_2025_08_26"]
    filters: WebSearchFilters | None = None
    return_token_budget: Literal["default"] | None = None
    # False means a search without access to the web.
    external_web_access: bool | None = None


class SearchAction(BaseModel):
    """Action of an earlier web search, whose texts the model reads. Other servers may add fields."""

    model_config = ConfigDict(strict=True, extra="allow")

    query: str | None = None
    queries: Array[str] | None = None
    url: str | None = None
    pattern: str | None = None


class WebSearchCallInput(StrictModel):
    """Web search, or an opened page, in the input."""

    type: Literal["web_search_call"]
    id: str | None = None
    action: SearchAction | None = None
    results: Objects | None = None
    status: CallEnding | None = None


def parse_web_search(raw: Mapping[str, Any], loc: Loc) -> dict[str, Any]:
    """Parse a declared web search to the form that the response repeats. Raises InvalidRequest."""
    if "preview" in raw["type"]:
        preview = validate(WebSearchPreviewTool, raw, loc)
        return {"type": preview.type, **_options(preview)}
    tool = validate(WebSearchTool, raw, loc)
    access = {} if tool.external_web_access is None else {"external_web_access": tool.external_web_access}
    filters = None if tool.filters is None else tool.filters.model_dump(exclude_none=True)
    budget = tool.return_token_budget or "default"
    return {"type": tool.type, **_options(tool), "filters": filters, "return_token_budget": budget, **access}


def _options(tool: SearchOptions) -> dict[str, Any]:
    return {
        "search_content_types": tool.search_content_types or ["text"],
        "search_context_size": tool.search_context_size,
        "user_location": (tool.user_location or _DEFAULT_LOCATION).model_dump(),
    }
