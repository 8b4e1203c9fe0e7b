"""Tokens and moments of one run, for its usage and for the log of the server."""

from __future__ import annotations

import time
from dataclasses import dataclass

from responses_app.engine_interface import Chunk


@dataclass(slots=True)
class UsageCounter:
    """Tokens and moments of one run; times are monotonic seconds."""

    prompt: int
    cached: int = 0
    output: int = 0
    began: float = 0.0
    first: float | None = None

    def count(self, chunk: Chunk) -> None:
        """Add what a chunk brought."""
        if self.first is None and chunk.tokens:
            self.first = time.monotonic()
        self.output += len(chunk.tokens)
        if chunk.prompt is not None:
            self.prompt = chunk.prompt
        if chunk.cached is not None:
            self.cached = chunk.cached
