"""Helpers to create requests and to collect their chunks."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

from responses_app.engine_interface import Chunk, Engine, GenerateRequest, Sampling

_numbers = itertools.count(1)


def make_request(
    prompt: Sequence[int] = (1, 2, 3), max_tokens: int = 16, *, id: str | None = None, sampling: Any = None, **fields: Any
) -> GenerateRequest:
    """Create a request with a new id; `sampling` are further fields of Sampling."""
    return GenerateRequest(id or f"r{next(_numbers)}", prompt, Sampling(max_tokens=max_tokens, **(sampling or {})), **fields)


async def collect(engine: Engine, request: GenerateRequest) -> list[Chunk]:
    """Return all chunks of a generation."""
    return [chunk async for chunk in engine.generate(request)]


def tokens(chunks: Iterable[Chunk]) -> list[int]:
    return [token for chunk in chunks for token in chunk.tokens]


def cached(chunks: Iterable[Chunk]) -> int | None:
    return next((chunk.cached for chunk in chunks if chunk.cached is not None), None)
