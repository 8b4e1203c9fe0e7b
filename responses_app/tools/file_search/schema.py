"""Schemas of the file search: the declaration in a request, and a call as an input item."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from responses_app.tools.file_search.attribute_filters import parse_filters
from responses_app.validation.base import Array, CallEnding, Direct, FileId, LongText, Objects, StrictModel, validate
from responses_app.validation.errors import Loc

MAX_STORES: Final = 16


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
    """File search in vector stores. `attribute_filters` parses `filters`."""

    type: Literal["file_search"]
    vector_store_ids: Annotated[Array[FileId], Field(min_length=1, max_length=MAX_STORES)]
    max_num_results: Annotated[int, Field(ge=1, le=50)] = 20
    filters: Any = None
    ranking_options: RankingOptions = Field(default_factory=RankingOptions)
    allowed_callers: Direct


class FileSearchCallInput(StrictModel):
    """File search in the input."""

    type: Literal["file_search_call"]
    id: str | None = None
    queries: Array[LongText] = Field(default_factory=list)
    results: Objects | None = None
    status: CallEnding | None = None


def parse_file_search(raw: Mapping[str, Any], loc: Loc) -> dict[str, Any]:
    """Parse a declared file search to the form that the response repeats. Raises InvalidRequest."""
    tool = validate(FileSearchTool, raw, loc)
    return {
        "type": tool.type,
        "vector_store_ids": tool.vector_store_ids,
        "max_num_results": tool.max_num_results,
        "filters": None if tool.filters is None else parse_filters(tool.filters, (*loc, "filters")),
        "ranking_options": tool.ranking_options.model_dump(exclude_none=True),
    }
