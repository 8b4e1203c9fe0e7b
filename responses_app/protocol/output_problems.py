"""Output problems: parts of a model's output that are not understood, and outputs without an item.

The terminal snapshot lists the problems of a response in `output_problems`. Nothing is lost: generated text that no item contains is
the `text` of a problem.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from responses_app.protocol.items.base import Delta, Item

UNKNOWN_TOOL: Final = "unknown_tool"
TOOL_NOT_ALLOWED: Final = "tool_not_allowed"
CALL_WITHOUT_NAME: Final = "call_without_name"
INVALID_TOOL_ARGUMENTS: Final = "invalid_tool_arguments"
TEXT_IN_CALL: Final = "text_in_call"
UNKNOWN_CALL_FORM: Final = "unknown_call_form"
UNFINISHED_CALL: Final = "unfinished_call"
UNFINISHED_MARKER: Final = "unfinished_marker"
UNEXPECTED_MARKER: Final = "unexpected_marker"
MALFORMED_HEADER: Final = "malformed_header"
UNKNOWN_CHANNEL: Final = "unknown_channel"
UNKNOWN_RECIPIENT: Final = "unknown_recipient"
INVALID_UTF8: Final = "invalid_utf8"
EMPTY_OUTPUT: Final = "empty_output"
CALL_LIMIT_REACHED: Final = "call_limit_reached"

MESSAGES: Final[Mapping[str, str]] = {
    UNKNOWN_TOOL: "The model called a tool that the request does not define.",
    TOOL_NOT_ALLOWED: "The model called a tool that `tool_choice` does not allow. The call is text.",
    CALL_WITHOUT_NAME: "A call has no valid tool name. The call is text.",
    INVALID_TOOL_ARGUMENTS: "The arguments of the function call are not valid JSON.",
    TEXT_IN_CALL: "A block for calls contains something else than calls. Its text is a message.",
    UNKNOWN_CALL_FORM: "The text seems to contain a call in a form that is not known for this model. The call is text.",
    UNFINISHED_CALL: "The output ended inside a call.",
    UNFINISHED_MARKER: "The output ended inside a marker of the model's output format.",
    UNEXPECTED_MARKER: "The output contains a closing marker without an opening marker.",
    MALFORMED_HEADER: "The header of a message is malformed.",
    UNKNOWN_CHANNEL: "A message has an unknown channel. The message is part of the answer.",
    UNKNOWN_RECIPIENT: "A message has an unknown recipient. The message is text.",
    INVALID_UTF8: "The output contains bytes that are not valid UTF-8. U+FFFD replaces the bytes.",
    EMPTY_OUTPUT: "The model generated no text and no call.",
    CALL_LIMIT_REACHED: "A call of a tool of the server is beyond the limit of calls of the response. It was not made.",
}
"""Type of a problem -> message."""

MAX_PROBLEMS: Final = 100
"""Problems in a snapshot; later ones are left out."""

ProblemItem: TypeAlias = Literal["open", "next", "none"]


@dataclass(slots=True)
class OutputProblem(Delta):
    """Problem of the output. `item` is the item of the problem: the item opened last, the item that opens next, or none.

    `text` is generated text that no item contains.
    """

    type: str
    text: str = ""
    item: ProblemItem = "open"


@dataclass(frozen=True, slots=True)
class LocatedProblem:
    """Problem of the item at `output_index`, None for a problem without an item."""

    type: str
    output_index: int | None
    text: str

    def entry(self, items: Sequence[Item]) -> dict[str, Any]:
        """Return the entry of `output_problems`, with the place of the item if `items` contain it."""
        entry: dict[str, Any] = {"type": self.type, "message": MESSAGES[self.type]}
        if self.output_index is not None and self.output_index < len(items):
            entry |= {"output_index": self.output_index, "item_id": items[self.output_index]["id"]}
        return {**entry, "text": self.text} if self.text else entry


class ProblemList:
    """Problems of a response in order, each once."""

    def __init__(self) -> None:
        self._problems: dict[LocatedProblem, None] = {}

    def add(self, delta: OutputProblem, opened_items: int) -> None:
        """Add the problem of `delta`, which comes after `opened_items` items were opened."""
        index = {"open": opened_items - 1, "next": opened_items, "none": -1}[delta.item]
        self._problems.setdefault(LocatedProblem(delta.type, index if index >= 0 else None, delta.text))

    def entries(self, items: Sequence[Item], located: Sequence[LocatedProblem] = ()) -> list[dict[str, Any]]:
        """Return the entries of `output_problems`: the problems of the deltas and the `located` ones of the closed `items`."""
        problems = dict.fromkeys([*self._problems, *located])
        return [problem.entry(items) for problem in [*problems][:MAX_PROBLEMS]]
