"""Dialect interface: renders prompts, constrains outputs, and creates output parsers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Protocol

from responses_app.dialects.schema_limits import NO_LIMITS, SchemaLimits
from responses_app.dialects.text.budget import Budget
from responses_app.dialects.text.token_cache import TokenCache
from responses_app.engine_interface import Chunk, Constraint
from responses_app.protocol.deltas import Delta


class UnsupportedInput(ValueError):
    """The model does not support the input; `param` is the JSON path of the field.

    An index in `input[i]` counts the items of the turn, so earlier turns come first.
    """

    def __init__(self, message: str, param: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.param = param
        self.code = code


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Turn:
    """Input of a generation, in the wire format of the API: items oldest first, tools as declared."""

    items: Sequence[Mapping[str, Any]]
    today: date
    instructions: str | None = None
    tools: Sequence[Mapping[str, Any]] = ()
    tool_choice: str | Mapping[str, Any] = "auto"
    parallel_tool_calls: bool = True
    effort: str | None = None
    # True to render the reasoning of all earlier turns, even where the model's chat format leaves it out.
    all_reasoning: bool = False
    format: Mapping[str, Any] = field(default_factory=lambda: {"type": "text"})
    # White space in JSON of `format`: a key of `constraints.bounds.WHITE_SPACE`.
    json_whitespace: str = "compact"
    # Limits of the model for a JSON schema of `format`, and of tools where `max_reasoning_length` is set.
    schema_limits: SchemaLimits = NO_LIMITS
    # Longest reasoning in characters, and repetitions in a row after which a text ends, for models that do not end either.
    max_reasoning_length: int | None = None
    max_repetitions: int | None = None
    # Tokens of earlier prompts; None to disable caching.
    token_cache: TokenCache | None = field(default=None, compare=False)


class OutputParser(Protocol):
    """Parser of the tokens of a generation, in any grouping, to deltas. White space between items is dropped."""

    @property
    def reasoning_tokens(self) -> int:
        """Number of reasoning tokens so far."""
        ...

    @property
    def done(self) -> bool:
        """True once no further output can produce deltas, so that the engine may be stopped.

        With `parallel_tool_calls: false` this is the case after the first complete call.
        """
        ...

    @property
    def stop_sequence(self) -> str | None:
        """Stop sequence of the request that has ended the text; None without a stop sequence."""
        ...

    @property
    def unread_tokens(self) -> int:
        """Number of tokens of the last chunk behind the token with which the parser was done."""
        ...

    def feed(self, chunk: Chunk) -> list[Delta]:
        """Return the deltas completed by `chunk`. Incomplete UTF-8 and incomplete markers are held back."""
        ...

    def finish(self) -> list[Delta]:
        """End the generation and return the text held back."""
        ...


class Dialect(Protocol):
    """Chat format of a model. Created once per model, shared by all runs, without state of a run."""

    stop_token_ids: Sequence[int]
    # Token ids of the model are less than this number.
    vocabulary_size: int
    # True if prompts can contain images; the engine gets those of `content.iter_images`, in the same order.
    supports_images: bool
    # Values of `reasoning.effort` that make a difference, in ascending order; empty if the model does not reason.
    efforts: Sequence[str]

    def render(self, turn: Turn, budget: Budget | None = None) -> list[int]:
        """Render the prompt token ids. Raises UnsupportedInput, and by `budget` TooLong (early) and Stopped."""
        ...

    def constrain(self, turn: Turn) -> Constraint | None:
        """Return the constraint of the output: JSON schema formats, required or named tools. Raises UnsupportedInput."""
        ...

    def parser_for(self, turn: Turn) -> OutputParser:
        """Create an output parser for `turn`."""
        ...

    def token_text(self, tokens: Sequence[int]) -> str:
        """Decode tokens to text, special tokens included."""
        ...
