"""Limit of the calls of server tools in a response."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from responses_app.protocol.deltas import Arguments, Delta, EndItem, McpCall, OutputProblem
from responses_app.protocol.items.base import Item
from responses_app.protocol.items.server_tools.tool_result import OUTPUT_NOTE
from responses_app.protocol.output_problems import CALL_LIMIT_REACHED
from responses_app.tools.base import ToolExecutor

# The model reads this text behind the last output.
NOTE: Final = "[The limit of tool calls for this response is reached. Answer without more calls of this kind.]"


@dataclass(frozen=True, slots=True)
class CallLimit:
    """Limit of the calls of `tools`: a response has at most `most` calls."""

    tools: ToolExecutor
    most: int

    def left(self, items: Sequence[Item]) -> int:
        """Return how many calls may follow `items`, the output of the response so far."""
        return max(0, self.most - sum(map(self._counts, items)))

    def with_note(self, items: Sequence[Item]) -> list[Item]:
        """Return `items` with a note for the model behind the output of the last call."""
        last = max((at for at, item in enumerate(items) if self._counts(item)), default=None)
        return [{**item, OUTPUT_NOTE: NOTE} if at == last else item for at, item in enumerate(items)]

    def cut_openings(self, openings: Sequence[Delta]) -> list[Delta]:
        """Return `openings` with a problem in place of each approved call beyond the limit."""
        return [*self._cut(openings)]

    def _cut(self, openings: Sequence[Delta]) -> Iterator[Delta]:
        made, excess = 0, None
        for delta in openings:
            if isinstance(delta, McpCall):
                made += 1
                excess = delta if made > self.most else None
            if excess is None:
                yield delta
            elif isinstance(delta, Arguments):
                yield excess_call(f"{excess.server_label}.{excess.name}", delta.text)
            elif isinstance(delta, EndItem):
                excess = None

    def _counts(self, item: Item) -> bool:
        return self.tools.can_run(item) and self.tools.counts(item)


def excess_call(name: str, arguments: str) -> OutputProblem:
    """Return the problem of a call beyond the limit, which no item shows."""
    return OutputProblem(CALL_LIMIT_REACHED, f"{name} {arguments}", "none")
