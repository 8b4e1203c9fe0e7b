"""Collects what a listener says, so that neighbours of one kind leave as one piece."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from responses_app.protocol.deltas import Arguments, Delta, EndItem, Json, ReasoningDelta, TextDelta

Logprobs: TypeAlias = Sequence[Json]


@dataclass(frozen=True, slots=True, eq=False)
class TextChannel:
    """A kind of text: `speak` makes its piece from the text and its log-probabilities."""

    name: str
    speak: Callable[[str, Logprobs], Delta]


REASONING = TextChannel("reasoning", lambda text, _: ReasoningDelta(text))
ARGUMENTS = TextChannel("arguments", lambda text, _: Arguments(text))
MESSAGE = TextChannel("message", lambda text, logprobs: TextDelta(text, logprobs))
COMMENTARY = TextChannel("commentary", lambda text, logprobs: TextDelta(text, logprobs, "commentary"))
FINAL = TextChannel("final", lambda text, logprobs: TextDelta(text, logprobs, "final_answer"))


class DeltaBuffer:
    """Pieces in the order in which they were said; text of one voice is joined until another voice or piece follows."""

    def __init__(self) -> None:
        self._pieces: list[Delta] = []
        self._voice: TextChannel | None = None
        self._texts: list[str] = []
        self._logprobs: list[Json] = []
        self._open = False

    def say(self, voice: TextChannel, text: str, logprobs: Logprobs = ()) -> None:
        """Add text; an empty one says nothing."""
        if not text:
            return
        if voice is not self._voice:
            self._flush()
            self._voice = voice
        self._texts.append(text)
        self._logprobs.extend(logprobs)
        self._open = True

    def add(self, piece: Delta) -> None:
        """Add a piece that opens an item."""
        self._flush()
        self._pieces.append(piece)
        self._open = True

    def end(self) -> None:
        """The item that was said is complete. Does nothing if there is none."""
        if self._open:
            self._flush()
            self._pieces.append(EndItem())
            self._open = False

    def take(self) -> list[Delta]:
        """What was said since the last time."""
        self._flush()
        pieces, self._pieces = self._pieces, []
        return pieces

    def _flush(self) -> None:
        if self._voice is not None:
            self._pieces.append(self._voice.speak("".join(self._texts), tuple(self._logprobs)))
            self._voice, self._texts, self._logprobs = None, [], []
