"""What every dialect offers: it renders a turn, it constrains the answer, it listens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Protocol

from responses_app.dialects.text.budget import Budget
from responses_app.dialects.text.token_cache import TokenCache
from responses_app.engine_interface import Chunk, Constraint
from responses_app.protocol.deltas import Delta


class UnsupportedInput(ValueError):
    """The turn cannot be put to this model; `param` is the JSON path of the field to blame.

    An index in `input[i]` counts the items of the turn, so earlier turns come first.
    """

    def __init__(self, message: str, param: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.param = param
        self.code = code


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Turn:
    """All that a model is told for one generation, in the wire forms of the API: items oldest first, tools as declared."""

    items: Sequence[Mapping[str, Any]]
    today: date
    instructions: str | None = None
    tools: Sequence[Mapping[str, Any]] = ()
    tool_choice: str | Mapping[str, Any] = "auto"
    parallel_tool_calls: bool = True
    effort: str | None = None
    # Whether reasoning of earlier turns is told too, where the model's own rule would leave it out.
    all_reasoning: bool = False
    format: Mapping[str, Any] = field(default_factory=lambda: {"type": "text"})
    # What is known of earlier prompts, for whoever has a place to keep it.
    memo: TokenCache | None = field(default=None, compare=False)


class OutputParser(Protocol):
    """Hears the tokens of one generation, in any grouping, and says pieces. White space between items dies here."""

    @property
    def reasoning_tokens(self) -> int:
        """How many tokens were spent on reasoning so far."""
        ...

    @property
    def done(self) -> bool:
        """Whether nothing more will be said whatever the model generates, so that the engine may be stopped.

        So it is once the one call of `parallel_tool_calls: false` is complete.
        """
        ...

    def feed(self, chunk: Chunk) -> list[Delta]:
        """Pieces that these tokens complete. Incomplete UTF-8 and incomplete markers are held back."""
        ...

    def finish(self) -> list[Delta]:
        """The generation is over: whatever was held back, if it is text after all."""
        ...


class Dialect(Protocol):
    """One way of talking. Instances are per model, made once, shared by all runs, and hold no state of a run."""

    stop_token_ids: Sequence[int]
    # Whether images can be told at all; what `parts.images` finds in a turn is then to be given to the engine, in that order.
    supports_images: bool

    def render(self, turn: Turn, budget: Budget | None = None) -> list[int]:
        """Prompt token ids. Raises BadTurn; TooLong, before most of the work is done, and Stopped, both by the budget."""
        ...

    def constrain(self, turn: Turn) -> Constraint | None:
        """What the answer must match: json_schema formats, required or named tools. Raises BadTurn."""
        ...

    def parser_for(self, turn: Turn) -> OutputParser:
        """A fresh listener for the answer to `turn`."""
        ...

    def token_text(self, tokens: Sequence[int]) -> str:
        """The text of tokens, special ones as they are written."""
        ...
