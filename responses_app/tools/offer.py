"""Offer of a server tool: its functions, the openings of calls, and the choice of the tool."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from responses_app.dialects.citations.sources import Sources
from responses_app.protocol.deltas import Delta
from responses_app.tools.base import Json


class ServerToolOffer:
    """Offer of a server tool, a `CitingOffer`. `types` are the types of its declarations, `functions` its functions by name.

    `open_call` returns the delta that opens a call of a function. The first function is that which a `tool_choice` of the tool
    forces; its description ends with `description`. `sources` are those that the model has read.
    """

    def __init__(
        self,
        types: Collection[str],
        functions: Mapping[str, Json],
        open_call: Callable[[str], Delta],
        description: str = "",
        sources: Sources | None = None,
    ) -> None:
        self._types, self._functions, self._open_call, self._description = types, functions, open_call, description
        self.sources = sources

    @property
    def functions(self) -> Sequence[Json]:
        """Functions that the model is offered."""
        functions = [*self._functions.values()]
        if self._description:
            functions[0] = {**functions[0], "description": f"{functions[0]['description']} {self._description}"}
        return functions

    def opening(self, function: str) -> Delta | None:
        """Return the delta that opens a call; None for a function of another tool or of the client."""
        return self._open_call(function) if function in self._functions else None

    def tool_choice(self, choice: str | Json) -> str | Json:
        """Return `choice` with functions in place of the server tool."""
        if isinstance(choice, str):
            return choice
        if choice.get("type") in self._types:
            return {"type": "function", "name": next(iter(self._functions))}
        if choice.get("type") != "allowed_tools":
            return choice
        functions = [{"type": "function", "name": name} for name in self._functions]
        chosen = [one for entry in choice["tools"] for one in (functions if entry["type"] in self._types else [entry])]
        return {**choice, "tools": chosen}
