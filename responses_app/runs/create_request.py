"""What a front door asks of the hall: one validated create request, free of HTTP."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Final

import orjson

# A `compact_threshold` that is left to the server: a part of the model's context window.
OWN_THRESHOLD: Final = 0


@dataclass(frozen=True, slots=True)
class CreateRequest:
    """A create request after validation. Items and tools are in wire form; `echo` holds the fields that the response repeats."""

    project: str
    key: int | None
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
    # Where one of these is said, the answer ends before it.
    stop: Sequence[str] = ()
    max_output_tokens: int | None = None
    store: bool = True
    stream: bool = False
    background: bool = False
    obfuscate: bool = False
    # Whether a failure is told by an event of its own before the terminal one. On a WebSocket that would be another answer.
    emit_error_event: bool = True
    # Whether anything is to be generated; if not, the prompt is only made ready (responses-api.md §3.25).
    generate: bool = True
    # Smaller is served sooner.
    priority: int = 0
    cache_key: str | None = None
    truncation: str = "disabled"
    # Length of the context in tokens from which on the response ends with a compaction; None for never.
    compact_threshold: int | None = None
    # Whether a compaction of the context is all that is asked for.
    compacts: bool = False
    # Alternatives wanted for every token of a message; None: no log-probabilities at all.
    logprobs: int | None = None
    # The `x-request-id` of the request.
    request_id: str = ""
    previous_response_id: str | None = None
    conversation: str | None = None
    include: frozenset[str] = frozenset()
    metadata: Mapping[str, str] = field(default_factory=dict)
    echo: Mapping[str, Any] = field(default_factory=dict)

    def dump(self) -> str:
        """It as JSON, but for the input, which is kept as items."""
        told = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "input"}
        return orjson.dumps(told, default=_listed).decode()

    @classmethod
    def load(cls, text: str, input: Sequence[dict[str, Any]]) -> CreateRequest:
        """What `dump` wrote, with that input. What an older version has not written has its default."""
        told = orjson.loads(text)
        known = {one.name for one in fields(cls)}
        told["include"] = frozenset(told["include"])
        return cls(input=input, **{name: value for name, value in told.items() if name in known})


def _listed(value: Any) -> Any:
    if isinstance(value, frozenset):
        return sorted(value)
    raise TypeError(f"{type(value).__name__} in an order")
