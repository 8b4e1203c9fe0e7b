"""Token counts of a round and of a run."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from responses_app.engine_interface import Chunk
from responses_app.observability.records import EndedResponse


@dataclass(slots=True)
class UsageCounter:
    """Token counts of a round, or the sum over rounds.

    `first` is the monotonic time in seconds of the first token. `timed` tokens were generated within `generation_s` seconds, from
    the first to the last token of each round; tokens of an earlier owner of the run are not timed.
    """

    prompt: int = 0
    cached: int = 0
    output: int = 0
    reasoning: int = 0
    first: float | None = None
    timed: int = 0
    generation_s: float = 0.0

    @property
    def generation_ms(self) -> int | None:
        """Milliseconds in which all output tokens were generated; None if some are not timed."""
        return round(self.generation_s * 1000) if self.timed == self.output else None

    def count(self, chunk: Chunk) -> None:
        """Add the tokens of `chunk`; take over the lengths of the prompt and of the cached part where the engine reports these."""
        if chunk.tokens:
            now = time.monotonic()
            if self.first is None:
                self.first = now
            self.generation_s = now - self.first
            self.timed += len(chunk.tokens)
            self.output += len(chunk.tokens)
        if chunk.prompt is not None:
            self.prompt = chunk.prompt
        if chunk.cached is not None:
            self.cached = chunk.cached

    def plus(self, other: UsageCounter) -> UsageCounter:
        """Return the sum of both; `first` is the value of `self` if present."""
        first = other.first if self.first is None else self.first
        output, reasoning = self.output + other.output, self.reasoning + other.reasoning
        timed, generation_s = self.timed + other.timed, self.generation_s + other.generation_s
        prompt, cached = self.prompt + other.prompt, self.cached + other.cached
        return UsageCounter(prompt, cached, output, reasoning, first, timed, generation_s)

    def record(self, response: Mapping[str, Any], began: float, earlier_s: float) -> EndedResponse:
        """Return the record of a response that this process has run since `began`, and earlier processes for `earlier_s` seconds."""
        first_s = None if self.first is None or earlier_s else self.first - began
        token_s = self.generation_s / (self.timed - 1) if self.timed > 1 else None
        return EndedResponse(response, time.monotonic() - began + earlier_s, first_s, token_s)

    def summary(self, began: float) -> str:
        """Return the counts and the times, in seconds since `began`, for the server's log."""
        now = time.monotonic()
        first = (self.first or now) - began
        return f"in={self.prompt} cached={self.cached} out={self.output} ttft={first:.3f}s total={now - began:.3f}s"
