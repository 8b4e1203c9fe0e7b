"""Schemas of vector stores: requests to create and change stores, to add files, and to search."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from responses_app.errors import InvalidRequest
from responses_app.models import MAX_STORE_NAME_CHARS
from responses_app.store.vector_stores.chunker import (
    DEFAULT_CHUNK_TOKENS,
    DEFAULT_OVERLAP_TOKENS,
    MAX_CHUNK_TOKENS,
    MIN_CHUNK_TOKENS,
)
from responses_app.store.vector_stores.store_files import NewStoreFile
from responses_app.tools.file_search.attribute_filters import parse_filters
from responses_app.tools.file_search.schema import RankingOptions
from responses_app.validation.base import NUL_REFUSED, Array, FileId, StoredText, StrictModel, validate
from responses_app.validation.errors import Loc, invalid, json_path, wrong_type

MAX_DESCRIPTION_CHARS = 4096
MAX_FILES_AT_CREATION = 500
MAX_BATCH_FILES = 2000
MAX_ATTRIBUTES = 16
MAX_KEY_CHARS = 64
MAX_ATTRIBUTE_CHARS = 512
# Postgres returns larger numbers as integers, for which the JSON of an answer has no place.
MIN_NUMBER, MAX_NUMBER = -(2**63), 2**64 - 1
MAX_QUERY_CHARS = 32_768
MAX_QUERIES = 16
MAX_RESULTS = 50
DEFAULT_RESULTS = 10


class ExpiresAfter(StrictModel):
    """Expiry of a vector store: days after the last use."""

    anchor: Literal["last_active_at"]
    days: Annotated[int, Field(ge=1, le=365)]


class StaticSizes(StrictModel):
    """Sizes of chunks in tokens."""

    max_chunk_size_tokens: Annotated[int, Field(ge=MIN_CHUNK_TOKENS, le=MAX_CHUNK_TOKENS)]
    chunk_overlap_tokens: Annotated[int, Field(ge=0, le=MAX_CHUNK_TOKENS // 2)]

    @model_validator(mode="after")
    def _check_overlap(self) -> StaticSizes:
        if self.chunk_overlap_tokens > self.max_chunk_size_tokens // 2:
            raise ValueError("'chunk_overlap_tokens' is at most half of 'max_chunk_size_tokens'.")
        return self


class ChunkingStrategy(StrictModel):
    """Division of files into chunks."""

    type: Literal["auto", "static"]
    static: StaticSizes | None = None

    @model_validator(mode="after")
    def _check_static(self) -> ChunkingStrategy:
        if (self.type == "static") != (self.static is not None):
            raise ValueError("'static' is given with the type 'static', and only then.")
        return self

    @property
    def sizes(self) -> tuple[int, int]:
        """Tokens of a chunk, and tokens that neighbours share."""
        if self.static is None:
            return DEFAULT_CHUNK_TOKENS, DEFAULT_OVERLAP_TOKENS
        return self.static.max_chunk_size_tokens, self.static.chunk_overlap_tokens


class CreateVectorStore(StrictModel):
    """Body of POST /v1/vector_stores."""

    name: Annotated[StoredText, Field(max_length=MAX_STORE_NAME_CHARS)] = ""
    description: Annotated[StoredText, Field(max_length=MAX_DESCRIPTION_CHARS)] = ""
    file_ids: Annotated[Array[FileId], Field(max_length=MAX_FILES_AT_CREATION)] = Field(default_factory=list)
    expires_after: ExpiresAfter | None = None
    chunking_strategy: ChunkingStrategy | None = None
    metadata: Any = None

    @property
    def new_files(self) -> list[NewStoreFile]:
        """Files to add."""
        return [_new_file(one, {}, self.chunking_strategy, f"file_ids[{n}]") for n, one in enumerate(self.file_ids)]


class UpdateVectorStore(StrictModel):
    """Body of POST /v1/vector_stores/{id}."""

    name: Annotated[StoredText, Field(max_length=MAX_STORE_NAME_CHARS)] | None = None
    description: Annotated[StoredText, Field(max_length=MAX_DESCRIPTION_CHARS)] | None = None
    expires_after: ExpiresAfter | None = None
    metadata: Any = None


class CreateStoreFile(StrictModel):
    """Body of POST /v1/vector_stores/{id}/files, and a file of a batch."""

    file_id: FileId
    attributes: Any = None
    chunking_strategy: ChunkingStrategy | None = None


class CreateFileBatch(StrictModel):
    """Body of POST /v1/vector_stores/{id}/file_batches."""

    file_ids: Annotated[Array[FileId], Field(min_length=1, max_length=MAX_BATCH_FILES)] | None = None
    files: Annotated[Array[CreateStoreFile], Field(min_length=1, max_length=MAX_BATCH_FILES)] | None = None
    attributes: Any = None
    chunking_strategy: ChunkingStrategy | None = None


class UpdateStoreFile(StrictModel):
    """Body of POST /v1/vector_stores/{id}/files/{file_id}."""

    attributes: Any = None


class SearchRequest(StrictModel):
    """Body of POST /v1/vector_stores/{id}/search."""

    query: Any
    max_num_results: Annotated[int, Field(ge=1, le=MAX_RESULTS)] = DEFAULT_RESULTS
    filters: Any = None
    ranking_options: RankingOptions = Field(default_factory=RankingOptions)
    rewrite_query: bool = False


def parse_new_file(raw: object) -> NewStoreFile:
    """Parse the file to add to a store. Raises InvalidRequest."""
    body = validate(CreateStoreFile, raw)
    return _new_file(body.file_id, parse_attributes(body.attributes), body.chunking_strategy, "file_id")


def parse_batch(raw: object) -> list[NewStoreFile]:
    """Parse the files of a batch. Raises InvalidRequest."""
    body = validate(CreateFileBatch, raw)
    attributes = parse_attributes(body.attributes)
    if (body.file_ids is None) == (body.files is None):
        raise InvalidRequest("Give either 'file_ids' or 'files'.", param="file_ids", code="invalid_value")
    if body.file_ids is not None:
        return [_new_file(one, attributes, body.chunking_strategy, f"file_ids[{n}]") for n, one in enumerate(body.file_ids)]
    return [
        _new_file(
            one.file_id,
            parse_attributes(one.attributes, ("files", n, "attributes")),
            one.chunking_strategy,
            f"files[{n}].file_id",
        )
        for n, one in enumerate(body.files or ())
    ]


def parse_attributes(raw: object, loc: Loc = ("attributes",)) -> dict[str, Any]:
    """Parse the attributes of a file: strings, numbers and booleans. Raises InvalidRequest."""
    if raw is None:
        return {}
    if not isinstance(raw, dict):
        raise wrong_type(json_path(loc), "an object", raw)
    if len(raw) > MAX_ATTRIBUTES:
        raise invalid(loc, f"a file has at most {MAX_ATTRIBUTES} attributes.")
    return {key: _attribute(key, value, loc) for key, value in raw.items()}


def parse_queries(raw: object) -> list[str]:
    """Parse `query`, a text or a list of texts. Raises InvalidRequest."""
    queries: list[Any] = raw if isinstance(raw, list) else [raw]
    if not 1 <= len(queries) <= MAX_QUERIES:
        raise invalid(("query",), f"expected 1 to {MAX_QUERIES} queries, but got {len(queries)}.")
    for index, query in enumerate(queries):
        loc: Loc = ("query", index) if isinstance(raw, list) else ("query",)
        if not isinstance(query, str):
            raise wrong_type(json_path(loc), "a string", query)
        if not query.strip() or len(query) > MAX_QUERY_CHARS:
            raise invalid(loc, f"expected a text of 1 to {MAX_QUERY_CHARS} characters.")
    return queries


def parse_search(raw: object) -> tuple[list[str], SearchRequest, dict[str, Any] | None]:
    """Parse a search: the queries, the request, and the filters. Raises InvalidRequest."""
    body = validate(SearchRequest, raw)
    return parse_queries(body.query), body, None if body.filters is None else parse_filters(body.filters, ("filters",))


def _attribute(key: str, value: object, loc: Loc) -> Any:
    if not 1 <= len(key) <= MAX_KEY_CHARS:
        raise invalid(loc, f"names of attributes have 1 to {MAX_KEY_CHARS} characters.")
    if "\0" in key:
        raise invalid(loc, f"a name: {NUL_REFUSED}")
    if isinstance(value, str):
        if len(value) > MAX_ATTRIBUTE_CHARS:
            raise invalid((*loc, key), f"the value has more than {MAX_ATTRIBUTE_CHARS} characters.")
        if "\0" in value:
            raise invalid((*loc, key), NUL_REFUSED)
        return value
    if not isinstance(value, bool | int | float):
        raise wrong_type(json_path((*loc, key)), "a string, a number or a boolean", value)
    if not MIN_NUMBER <= value <= MAX_NUMBER:
        raise invalid((*loc, key), f"expected a number from {MIN_NUMBER} to {MAX_NUMBER}.")
    return value


def _new_file(file_id: str, attributes: dict[str, Any], strategy: ChunkingStrategy | None, path: str) -> NewStoreFile:
    chunk_tokens, overlap_tokens = (strategy or ChunkingStrategy(type="auto")).sizes
    return NewStoreFile(file_id, attributes, chunk_tokens, overlap_tokens, path)
