"""How a model is asked for a summary of what was said, and how its answer is heard."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from responses_app.dialects.base import Listener
from responses_app.engines.border import Chunk
from responses_app.grammar.pieces import Compaction, Piece, Text
from responses_app.runs.order import Order
from responses_app.runs.sealed import seal_summary

ASKED = (
    "Summarize our conversation so far, for yourself: you will be given your summary in place of what you have said and of what your "
    "tools have returned. Keep every fact, name, number, decision and open task. Answer with the summary alone."
)
QUESTION = {
    "type": "message",
    "id": "msg_summary",
    "role": "user",
    "status": "completed",
    "content": [{"type": "input_text", "text": ASKED}],
}
# In tokens; a summary has no use if it is as long as what it stands for.
LONGEST = 4096


def asking(order: Order) -> Order:
    """The order as it is when a summary is its answer."""
    plain = {"type": "text"}
    return replace(order, tools=(), tool_choice="auto", format=plain, max_output_tokens=LONGEST, logprobs=None, stop=())


def told(pieces: Iterable[Piece]) -> str:
    """The summary in what was heard."""
    return "".join(piece.text for piece in pieces if isinstance(piece, Text)).strip()


class Summing:
    """Hears what another listener hears, and says one compaction of it at the end, or nothing if it was no summary."""

    def __init__(self, inner: Listener, project: str) -> None:
        self._inner, self._project = inner, project
        self._heard: list[Piece] = []

    @property
    def reasoning_tokens(self) -> int:
        return self._inner.reasoning_tokens

    @property
    def done(self) -> bool:
        return self._inner.done

    def hear(self, chunk: Chunk) -> list[Piece]:
        self._heard += self._inner.hear(chunk)
        return []

    def close(self) -> list[Piece]:
        summary = told([*self._heard, *self._inner.close()])
        return [Compaction(seal_summary(self._project, summary))] if summary else []
