"""Search in vector stores: embeds the queries, searches each store, and joins the results."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from asgiref.sync import ThreadSensitiveContext, sync_to_async
from django.conf import settings
from django.utils import timezone

from responses_app.models import VectorStore
from responses_app.store.db import release_connection
from responses_app.store.vector_stores import stores as stored
from responses_app.store.vector_stores.search import ChunkResult, Query, RankingWeights, search_store
from responses_app.tools.file_search import embedder
from responses_app.utils.shares import shares_of

logger = logging.getLogger("responses.files")

# Searches of a project that wait for a place.
MAX_WAITING = 256


@dataclass(frozen=True, slots=True)
class StoreSearchOptions:
    """Options of a search: the most results, the least score from 0 to 1, and a filter of attributes."""

    limit: int
    score_threshold: float = 0.0
    filters: Mapping[str, Any] | None = None
    weights: RankingWeights | None = None

    @classmethod
    def parse(cls, limit: int, ranking: Mapping[str, Any], filters: Mapping[str, Any] | None) -> StoreSearchOptions:
        """Return the options of a request. `ranking` are the `ranking_options` of the API, after validation."""
        hybrid = ranking.get("hybrid_search")
        weights = RankingWeights(hybrid["text_weight"], hybrid["embedding_weight"]) if hybrid else None
        return cls(limit, ranking.get("score_threshold", 0.0), filters, weights)


async def search(stores: Sequence[VectorStore], texts: Sequence[str], options: StoreSearchOptions) -> list[ChunkResult]:
    """Return the best results of all `stores`, best first, and store the time of the use.

    Without an answer of the embeddings server the search is by words alone. Projects take turns. Raises ShareExceeded.
    """
    queries = await _queries(texts)
    projects = {store.project for store in stores}
    shares = shares_of("searches", settings.RESPONSES_SEARCH_PARALLEL, max_waiting=MAX_WAITING, wait_s=None)
    # A thread of its own: the shared thread writes the logs of all streams.
    async with shares.place(min(projects, default="")), ThreadSensitiveContext():
        return await sync_to_async(_search)(stores, queries, options)


async def _queries(texts: Sequence[str]) -> list[Query]:
    if embedder.is_configured():
        try:
            vectors, model = await embedder.embed(texts), settings.RESPONSES_EMBEDDINGS_MODEL
            return [Query(text, vector, model) for text, vector in zip(texts, vectors, strict=True)]
        except embedder.EmbeddingFailed as error:
            logger.warning("search by words alone: %s", error)
    return [Query(text) for text in texts]


def _search(stores: Sequence[VectorStore], queries: Sequence[Query], options: StoreSearchOptions) -> list[ChunkResult]:
    try:
        stored.touch(stores, timezone.now())
        results = [search_store(store, queries, options.limit, options.filters, options.weights) for store in stores]
    finally:
        release_connection()
    merged_results = [result for each in results for result in each]
    merged_results.sort(key=lambda result: -result.score)
    return [result for result in merged_results[: options.limit] if result.score >= options.score_threshold]
