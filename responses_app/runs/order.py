"""What a front door asks of the hall: one validated create request, free of HTTP."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Order:
    """A create request after validation. Items and tools are in wire form; `echo` holds the fields that the response repeats."""

    project: str
    key: int
    model: str
    input: Sequence[dict[str, Any]]
    instructions: str | None = None
    tools: Sequence[Mapping[str, Any]] = ()
    tool_choice: str | Mapping[str, Any] = "auto"
    parallel_tool_calls: bool = True
    reasoning: Mapping[str, Any] | None = None
    format: Mapping[str, Any] = field(default_factory=lambda: {"type": "text"})
    temperature: float | None = None
    top_p: float | None = None
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    ignore_eos: bool = False
    max_output_tokens: int | None = None
    store: bool = True
    stream: bool = False
    background: bool = False
    obfuscate: bool = False
    # Smaller is served sooner.
    priority: int = 0
    cache_key: str | None = None
    truncation: str = "disabled"
    # Length of the context in tokens from which on the response ends with a compaction; None for never.
    compact_threshold: int | None = None
    # Alternatives wanted for every token of a message; None: no log-probabilities at all.
    logprobs: int | None = None
    previous_response_id: str | None = None
    conversation: str | None = None
    include: frozenset[str] = frozenset()
    metadata: Mapping[str, str] = field(default_factory=dict)
    echo: Mapping[str, Any] = field(default_factory=dict)
