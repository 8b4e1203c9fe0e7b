"""Search in the chunks of a vector store: by words, and by embeddings where chunks have embeddings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection

from responses_app.models import VectorStore
from responses_app.store.vector_stores.filters import Condition, Json, compile_filter, storable_text

# Different words of a query that are searched, in order of the alphabet.
MAX_TERMS = 48
# Chunks with the best sums of word weights. Only for these chunks Postgres reads the positions of the words.
CANDIDATES = 200
# Share of the score for how often and how near to each other the words stand in the chunk.
PROXIMITY_SHARE = 0.2
# Prefix of the search term that stands for a store. Terms of a text contain no blank, so no text can imitate the term.
STORE_TERM_PREFIX = "store "

_LEXEMES_SQL = "SELECT tsvector_to_array(to_tsvector(%s::regconfig, %s))"
# `hit` has the chunks of each word. A rare word weighs more than a common word, as in BM25. A word that no chunk contains weighs as
# much as the mean of the others, so that a chunk with all words of a query scores higher than a chunk with one of the words.
# Normalisation 33 of ts_rank_cd: divided by 1 + the logarithm of the length, then mapped to 0..1 by rank / (rank + 1).
_WORDS_SQL = """
WITH total AS MATERIALIZED (SELECT count(*)::float8 AS chunks FROM responses_app_filechunk chunk WHERE {scope}),
hit AS MATERIALIZED (
  SELECT found.ids, ln(1 + (total.chunks - found.df + 0.5) / (found.df + 0.5))::float8 AS weight
  FROM total, unnest(%(terms)s::text[]) AS term (query) CROSS JOIN LATERAL (
    SELECT array_agg(chunk.id) AS ids, count(*)::float8 AS df FROM responses_app_filechunk chunk
    WHERE chunk.search @@ term.query::tsquery AND {scope}) AS found
  WHERE found.df > 0),
best AS (
  SELECT id, sum(hit.weight) / (SELECT avg(weight) * %(count)s FROM hit) AS coverage
  FROM hit, unnest(hit.ids) AS id GROUP BY id ORDER BY coverage DESC, id LIMIT %(candidates)s)
SELECT chunk.id, (1 - %(share)s) * best.coverage + %(share)s * ts_rank_cd(chunk.search, %(any)s::tsquery, 33) AS score
FROM best JOIN responses_app_filechunk chunk USING (id) ORDER BY score DESC, chunk.id LIMIT %(limit)s
"""
_HAS_PGVECTOR_SQL = "SELECT to_regtype('vector') IS NOT NULL"
_PGVECTOR_DISTANCE = "chunk.embedding::vector <=> %(embedding)s::vector"
# Embeddings have the length 1, so the product is the cosine.
_PLAIN_DISTANCE = "(SELECT -sum(a * b) FROM unnest(chunk.embedding, %(embedding)s::real[]) AS pair (a, b))"
_EMBEDDINGS_SQL = """
WITH comparable AS MATERIALIZED (
  SELECT chunk.id, chunk.embedding FROM responses_app_filechunk chunk
  WHERE cardinality(chunk.embedding) = %(dimensions)s AND {scope} AND chunk.store_file_id IN (
    SELECT id FROM responses_app_vectorstorefile WHERE store_id = %(store)s AND embedding_model IN ('', %(model)s)))
SELECT chunk.id FROM comparable chunk ORDER BY {distance}, chunk.id LIMIT %(limit)s
"""
_FILTERED_SQL = """chunk.store_file_id IN (SELECT store_file.id FROM responses_app_vectorstorefile store_file
WHERE store_file.store_id = %(store)s AND ({condition}))"""
_RESULTS_SQL = """
SELECT chunk.id, file.uid, file.filename, store_file.attributes::text, chunk.text, chunk.position
FROM responses_app_filechunk chunk
JOIN responses_app_vectorstorefile store_file ON store_file.id = chunk.store_file_id
JOIN responses_app_file file ON file.id = store_file.file_id WHERE chunk.id = ANY(%s)
"""


# Constant of the paper of Cormack, Clarke and Büttcher (SIGIR 2009).
K = 60


@dataclass(frozen=True, slots=True)
class Query:
    """Query of a search: text, and the embedding of the text by `model` if the server has an embedder."""

    text: str
    embedding: Sequence[float] | None = None
    model: str = ""


@dataclass(frozen=True, slots=True)
class ChunkResult:
    """Chunk that a search has found. `score` is between 0 and 1; `attributes` is JSON."""

    file_id: str
    filename: str
    score: float
    attributes: str
    text: str
    position: int


@dataclass(frozen=True, slots=True)
class RankingWeights:
    """Weights of the rankings by words and by embeddings."""

    words: float = 1.0
    embeddings: float = 1.0


def search_store(
    store: VectorStore,
    queries: Sequence[Query],
    limit: int,
    filters: Json | None = None,
    weights: RankingWeights | None = None,
) -> list[ChunkResult]:
    """Return the best `limit` chunks of `store`, best first.

    With embeddings, the rankings by words and by embeddings of all queries are fused. Without, the score of a chunk is the best
    relevance that the chunk has for a query.
    """
    scope = _scope(store, filters)
    by_words = [rank_by_words(store, query.text, CANDIDATES, scope) for query in queries]
    by_embedding = [rank_by_embedding(query, CANDIDATES, scope) for query in queries if query.embedding]
    weights = weights or RankingWeights()
    if any(by_embedding) and weights.embeddings > 0:
        each_weight = [weights.words] * len(by_words) + [weights.embeddings] * len(by_embedding)
        scores = fuse([*map(list, by_words), *by_embedding], each_weight)
    else:
        scores = _best_scores(by_words)
    return _results(dict(list(scores.items())[:limit]))


def rank_by_words(store: VectorStore, text: str, limit: int, scope: Condition) -> dict[int, float]:
    """Return the relevance of chunks that contain words of `text`, best first. Keys are primary keys of chunks."""
    condition, values = scope
    with connection.cursor() as cursor:
        cursor.execute(_LEXEMES_SQL, [store.text_config, storable_text(text)])
        (lexemes,) = cursor.fetchone()
        lexemes = lexemes[:MAX_TERMS]
        if not lexemes:
            return {}
        quoted = [quote_term(lexeme) for lexeme in lexemes]
        prefix = quote_term(store_term(store.pk))
        parameters = {
            "terms": [f"{prefix} & {term}" for term in quoted],
            "any": " | ".join(quoted),
            "count": len(lexemes),
            "candidates": CANDIDATES,
            "share": PROXIMITY_SHARE,
            "limit": limit,
            **values,
        }
        cursor.execute(_WORDS_SQL.format(scope=condition), parameters)
        return {pk: min(float(score), 1.0) for pk, score in cursor.fetchall()}


def rank_by_embedding(query: Query, limit: int, scope: Condition) -> list[int]:
    """Return the primary keys of the chunks whose embeddings are nearest by cosine, nearest first.

    Embeddings of other models are not compared, whatever their number of dimensions.
    """
    (condition, values), embedding = scope, query.embedding or ()
    with connection.cursor() as cursor:
        cursor.execute(_HAS_PGVECTOR_SQL)
        distance = _PGVECTOR_DISTANCE if cursor.fetchone() == (True,) else _PLAIN_DISTANCE
        parameters = {
            "embedding": list(embedding),
            "dimensions": len(embedding),
            "model": query.model,
            "limit": limit,
            **values,
        }
        if distance is _PGVECTOR_DISTANCE:
            parameters["embedding"] = f"[{','.join(map(repr, embedding))}]"
        cursor.execute(_EMBEDDINGS_SQL.format(scope=condition, distance=distance), parameters)
        return [pk for (pk,) in cursor.fetchall()]


def store_term(pk: int) -> str:
    """Return the search term of all chunks of the store `pk`."""
    return f"{STORE_TERM_PREFIX}{pk}"


def quote_term(term: str) -> str:
    """Quote a term for a query of Postgres' full-text search."""
    return "'" + term.replace("\\", "\\\\").replace("'", "''") + "'"


def _scope(store: VectorStore, filters: Json | None) -> Condition:
    """Return the condition on rows of `chunk`."""
    if filters is None:
        return "chunk.store_id = %(store)s", {"store": store.pk}
    condition, values = compile_filter(filters, "store_file.attributes")
    return f"chunk.store_id = %(store)s AND {_FILTERED_SQL.format(condition=condition)}", {"store": store.pk, **values}


def _best_scores(rankings: Iterable[Mapping[int, float]]) -> dict[int, float]:
    scores: dict[int, float] = {}
    for ranking in rankings:
        for pk, score in ranking.items():
            scores[pk] = max(score, scores.get(pk, 0.0))
    return dict(sorted(scores.items(), key=lambda pair: (-pair[1], pair[0])))


def _results(scores: Mapping[int, float]) -> list[ChunkResult]:
    """Read the chunks of `scores`, in the same order."""
    with connection.cursor() as cursor:
        cursor.execute(_RESULTS_SQL, [list(scores)])
        rows: dict[int, Any] = {row[0]: row[1:] for row in cursor.fetchall()}
    return [
        ChunkResult(file_id, filename, score, attributes, text, position)
        for pk, score in scores.items()
        if pk in rows
        for file_id, filename, attributes, text, position in [rows[pk]]
    ]


def fuse(rankings: Sequence[Sequence[int]], weights: Sequence[float] | None = None) -> dict[int, float]:
    """Return the score of each id in `rankings`, best first. The score is 1 for an id that leads every ranking.

    `weights` are the weights of the rankings, by default the same for all.
    """
    scores: dict[int, float] = {}
    weights = weights or [1.0] * len(rankings)
    for ranking, weight in zip(rankings, weights, strict=True):
        for rank, one in enumerate(ranking, start=1):
            scores[one] = scores.get(one, 0.0) + weight / (K + rank)
    best = sum(weights) / (K + 1) or 1.0
    ordered = sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))
    return {one: min(score / best, 1.0) for one, score in ordered}
