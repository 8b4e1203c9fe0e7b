"""Schemas of the server tools: code interpreter, web search and file search."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from responses_app.schemas.base import Array, StrictModel

FileId = Annotated[str, Field(min_length=1, max_length=128)]
Domain = Annotated[
    str, Field(max_length=253, pattern=r"^[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)+$")
]
Place = Annotated[str, Field(max_length=256)]
Direct = Annotated[Array[Literal["direct"]], Field(default_factory=list)]
MAX_CONTAINER_FILES = 50
MAX_DOMAINS = 100
MAX_STORES = 16


class CodeInterpreterTool(StrictModel):
    """Code interpreter. `container` is the id of a container, or an `AutoContainer`."""

    type: Literal["code_interpreter"]
    container: Any
    allowed_callers: Direct


class AutoContainer(StrictModel):
    """Container that the server makes for a request, or that an earlier response of the same conversation has made."""

    type: Literal["auto"]
    file_ids: Annotated[Array[FileId], Field(max_length=MAX_CONTAINER_FILES)] | None = None
    memory_limit: Literal["1g", "4g", "16g", "64g"] | None = None
    network_policy: Any = None


class NetworkPolicy(StrictModel):
    """Network access of a container. The sandbox has no network, so an allowlist is refused."""

    type: Literal["disabled"]


class SearchLocation(StrictModel):
    """Approximate location of the user of a web search."""

    type: Literal["approximate"] = "approximate"
    city: Place | None = None
    country: Annotated[str, Field(pattern=r"^[A-Za-z]{2}$")] | None = None
    region: Place | None = None
    timezone: Place | None = None


class WebSearchFilters(StrictModel):
    """Filters of a web search."""

    allowed_domains: Annotated[Array[Domain], Field(max_length=MAX_DOMAINS)] | None = None


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


class HybridSearch(StrictModel):
    """Weights of the two rankings of a file search."""

    embedding_weight: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    text_weight: Annotated[float, Field(ge=0, allow_inf_nan=False)]


class RankingOptions(StrictModel):
    """Ranking of the results of a file search."""

    ranker: Literal["auto", "none", "default-2024-11-15"] = "auto"
    score_threshold: Annotated[float, Field(ge=0, le=1)] = 0.0
    hybrid_search: HybridSearch | None = None


class FileSearchTool(StrictModel):
    """File search in vector stores. `schemas.parsing.attribute_filters` parses `filters`."""

    type: Literal["file_search"]
    vector_store_ids: Annotated[Array[FileId], Field(min_length=1, max_length=MAX_STORES)]
    max_num_results: Annotated[int, Field(ge=1, le=50)] = 20
    filters: Any = None
    ranking_options: RankingOptions = Field(default_factory=RankingOptions)
    allowed_callers: Direct


class ComparisonFilter(StrictModel):
    """Comparison of an attribute of a file with a value."""

    type: Literal["eq", "ne", "gt", "gte", "lt", "lte", "in", "nin"]
    key: Annotated[str, Field(min_length=1, max_length=64)]
    value: Any


class CompoundFilter(StrictModel):
    """Several filters, all or any of which must match."""

    type: Literal["and", "or"]
    filters: Annotated[list[Any], Field(min_length=1, max_length=64)]
