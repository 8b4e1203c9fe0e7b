"""Delta buffer: joins adjacent text of the same channel into a single delta."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from responses_app.protocol.deltas import Arguments, Delta, EndItem, Json, OutputProblem, ReasoningDelta, TextDelta
from responses_app.protocol.output_problems import ProblemItem

Logprobs: TypeAlias = Sequence[Json]


@dataclass(frozen=True, slots=True, eq=False)
class TextChannel:
    """Kind of text; `make_delta` creates a delta from the text and the log-probabilities."""

    name: str
    make_delta: Callable[[str, Logprobs], Delta]


REASONING = TextChannel("reasoning", lambda text, _: ReasoningDelta(text))
ARGUMENTS = TextChannel("arguments", lambda text, _: Arguments(text))
MESSAGE = TextChannel("message", lambda text, logprobs: TextDelta(text, logprobs))
COMMENTARY = TextChannel("commentary", lambda text, logprobs: TextDelta(text, logprobs, "commentary"))
FINAL = TextChannel("final", lambda text, logprobs: TextDelta(text, logprobs, "final_answer"))


class DeltaBuffer:
    """Deltas in output order; adjacent text of the same channel is joined."""

    def __init__(self) -> None:
        self._deltas: list[Delta] = []
        self._channel: TextChannel | None = None
        self._texts: list[str] = []
        self._logprobs: list[Json] = []
        self._open = False
        self._problems: list[OutputProblem] = []  # problems of the item that opens next

    @property
    def has_open_item(self) -> bool:
        """True if the deltas so far end inside of an item."""
        return self._open

    def append(self, channel: TextChannel, text: str, logprobs: Logprobs = ()) -> None:
        """Append text to a channel; empty text is ignored."""
        if not text:
            return
        if channel is not self._channel:
            self._flush()
            self._channel = channel
            self._deltas += self._take_problems("next")
        self._texts.append(text)
        self._logprobs.extend(logprobs)
        self._open = True

    def add(self, delta: Delta) -> None:
        """Append a delta that opens an item."""
        self._flush()
        self._deltas += [*self._take_problems("next"), delta]
        self._open = True

    def report(self, problem: str, text: str = "") -> None:
        """Report a problem of the open item, or of the item that opens before the next `end`. `text` is in no item."""
        if self._open:
            self._flush()
            self._deltas.append(OutputProblem(problem, text))
        else:
            self._problems.append(OutputProblem(problem, text))

    def end(self) -> None:
        """Close the open item, if any."""
        if self._open:
            self._flush()
            self._deltas.append(EndItem())
            self._open = False
        self._deltas += self._take_problems("none")

    def take(self) -> list[Delta]:
        """Return and remove the deltas so far."""
        self._flush()
        deltas, self._deltas = self._deltas, []
        return deltas

    def take_rest(self) -> list[Delta]:
        """Return and remove the deltas at the end of the generation."""
        return [*self.take(), *self._take_problems("none")]

    def _take_problems(self, item: ProblemItem) -> list[Delta]:
        problems, self._problems = self._problems, []
        return [replace(problem, item=item) for problem in problems]

    def _flush(self) -> None:
        if self._channel is not None:
            self._deltas.append(self._channel.make_delta("".join(self._texts), tuple(self._logprobs)))
            self._channel, self._texts, self._logprobs = None, [], []
