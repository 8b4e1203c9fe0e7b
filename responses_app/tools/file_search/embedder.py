"""Embedder: client of a server with the route `/v1/embeddings`, named by RESPONSES_EMBEDDINGS_URL."""

from __future__ import annotations

import math
from collections.abc import Sequence

import httpx2
from django.conf import settings

from responses_app.observability import events
from responses_app.outbound_http.certificates import default_ssl_context

TIMEOUT_S = 60.0
# Texts of a request.
BATCH = 64
MAX_DIMENSIONS = 16_000
_HINTS = {
    401: " The key of RESPONSES_EMBEDDINGS_KEY is refused.",
    403: " The key of RESPONSES_EMBEDDINGS_KEY is refused.",
    404: " Check the path of RESPONSES_EMBEDDINGS_URL, and RESPONSES_EMBEDDINGS_MODEL.",
    **dict.fromkeys((301, 302, 307, 308), " Set RESPONSES_EMBEDDINGS_URL to the address to which it redirects."),
    **dict.fromkeys((400, 413, 422), " The texts may be too long for its model: lower max_chunk_size_tokens."),
}
# Answers that have nothing to do with the texts of a request.
_OUTAGES = frozenset({301, 302, 307, 308, 401, 403, 404, 429, 502, 503, 504})


class EmbeddingFailed(Exception):
    """The embeddings server gave no embeddings. The message says why. `is_outage`: it gives none for any text."""

    def __init__(self, message: str, *, is_outage: bool = False) -> None:
        super().__init__(message)
        self.is_outage = is_outage


def is_configured() -> bool:
    """Return whether the server has an embedder."""
    return bool(settings.RESPONSES_EMBEDDINGS_URL)


async def embed(texts: Sequence[str]) -> list[list[float]]:
    """Return an embedding of length 1 for each text. Raises EmbeddingFailed."""
    headers = {"Authorization": f"Bearer {key}"} if (key := settings.RESPONSES_EMBEDDINGS_KEY) else {}
    vectors: list[list[float]] = []
    # No proxy of the environment, as for other servers that settings name.
    async with httpx2.AsyncClient(timeout=TIMEOUT_S, headers=headers, trust_env=False, verify=default_ssl_context()) as client:
        for start in range(0, len(texts), BATCH):
            vectors += await _observed_request(client, texts[start : start + BATCH])
    return vectors


async def _observed_request(client: httpx2.AsyncClient, texts: Sequence[str]) -> list[list[float]]:
    """Return the embeddings of up to BATCH texts, and report whether there were any. Raises EmbeddingFailed."""
    try:
        vectors = await _request(client, texts)
    except EmbeddingFailed:
        events.texts_embedded(is_success=False)
        raise
    events.texts_embedded(is_success=True)
    return vectors


async def _request(client: httpx2.AsyncClient, texts: Sequence[str]) -> list[list[float]]:
    body = {"model": settings.RESPONSES_EMBEDDINGS_MODEL, "input": list(texts), "encoding_format": "float"}
    try:
        response = await client.post(f"{settings.RESPONSES_EMBEDDINGS_URL.rstrip('/')}/embeddings", json=body)
        if response.status_code != 200:
            hint = _HINTS.get(response.status_code, "")
            raise EmbeddingFailed(
                f"The embeddings server answered with HTTP status {response.status_code}.{hint}",
                is_outage=response.status_code in _OUTAGES,
            )
        data = sorted(response.json()["data"], key=lambda one: one["index"])
        vectors = [_normalized(one["embedding"]) for one in data]
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        is_away = isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout)
        raise EmbeddingFailed(f"The embeddings server does not answer ({type(error).__name__}).", is_outage=is_away) from error
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        raise EmbeddingFailed("The embeddings server sent an answer that is not a list of embeddings.") from error
    if len(vectors) != len(texts) or len({len(vector) for vector in vectors}) != 1:
        raise EmbeddingFailed(f"The embeddings server returned {len(vectors)} embeddings for {len(texts)} texts.")
    return vectors


def _normalized(vector: Sequence[float]) -> list[float]:
    """Return the vector with the length 1. Raises ValueError for other values than finite numbers."""
    length = math.sqrt(sum(number * number for number in vector))
    if not math.isfinite(length) or not 0 < len(vector) <= MAX_DIMENSIONS:
        raise ValueError("no embedding")
    return [number / length for number in vector] if length else [float(number) for number in vector]
