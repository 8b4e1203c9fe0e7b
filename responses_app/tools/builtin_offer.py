"""Offer of a built-in tool: its functions, the openings of calls, and the choice of the tool."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeAlias

from responses_app.dialects.citations.sources import Sources
from responses_app.dialects.tools import builtin
from responses_app.protocol.deltas import Delta
from responses_app.tools.base import Json

# Returns the delta that opens a call of a function.
MakeOpening: TypeAlias = Callable[[], Delta]


class BuiltinOffer:
    """Offer of a built-in tool. `types` are the types of its declarations; `openings` has a function for each offered function.

    The first of `openings` is the function that a `tool_choice` of the tool forces. `sources` are those that the model has read.
    """

    def __init__(
        self,
        types: Collection[str],
        openings: Mapping[str, MakeOpening],
        description: str = "",
        sources: Sources | None = None,
    ) -> None:
        self._types, self._openings, self._description = types, openings, description
        self.sources = sources

    @property
    def functions(self) -> Sequence[Json]:
        """Functions that the model is offered. A description given to the offer is the end of the first function's description."""
        functions = [builtin.FUNCTIONS[name] for name in self._openings]
        if self._description:
            functions[0] = {**functions[0], "description": f"{functions[0]['description']} {self._description}"}
        return functions

    def opening(self, function: str) -> Delta | None:
        """Return the delta that opens a call; None for a function of another tool or of the client."""
        make = self._openings.get(function)
        return None if make is None else make()

    def tool_choice(self, choice: str | Json) -> str | Json:
        """Return `choice` with functions in place of the built-in tool."""
        if isinstance(choice, str):
            return choice
        if choice.get("type") in self._types:
            return {"type": "function", "name": next(iter(self._openings))}
        if choice.get("type") != "allowed_tools":
            return choice
        own = [{"type": "function", "name": name} for name in self._openings]
        chosen = [one for entry in choice["tools"] for one in (own if entry["type"] in self._types else [entry])]
        return {**choice, "tools": chosen}
