"""Token counts of a round and of a run."""

from __future__ import annotations

import time
from dataclasses import dataclass

from responses_app.engine_interface import Chunk


@dataclass(slots=True)
class UsageCounter:
    """Token counts of a round, or the sum over rounds. `first` is the monotonic time in seconds of the first token."""

    prompt: int = 0
    cached: int = 0
    output: int = 0
    reasoning: int = 0
    first: float | None = None

    def count(self, chunk: Chunk) -> None:
        """Add the tokens of `chunk`; take over the lengths of the prompt and of the cached part where the engine reports these."""
        if self.first is None and chunk.tokens:
            self.first = time.monotonic()
        self.output += len(chunk.tokens)
        if chunk.prompt is not None:
            self.prompt = chunk.prompt
        if chunk.cached is not None:
            self.cached = chunk.cached

    def plus(self, other: UsageCounter) -> UsageCounter:
        """Return the sum of both; `first` is the value of `self` if present."""
        first = other.first if self.first is None else self.first
        output, reasoning = self.output + other.output, self.reasoning + other.reasoning
        return UsageCounter(self.prompt + other.prompt, self.cached + other.cached, output, reasoning, first)

    def summary(self, began: float) -> str:
        """Return the counts and the times, in seconds since `began`, for the server's log."""
        now = time.monotonic()
        first = (self.first or now) - began
        return f"in={self.prompt} cached={self.cached} out={self.output} ttft={first:.3f}s total={now - began:.3f}s"
