"""Turns by which an output format is checked, written with the chat template of a model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Protocol

from responses_app.dialects.families.written_turns import (
    ANSWER,
    EMPTY,
    ESCAPED,
    ONE,
    OTHER,
    RICH,
    THOUGHT,
    Call,
    WrittenTurn,
)

Variants = list[WrittenTurn]
"""Turn in the forms that a template takes; a format has to read one of these."""


class TemplateWriter(Protocol):
    """Writes turns with a template of a checkpoint."""

    def write(self, *, calls: Sequence[Call] = (), content: str = "", reasoning: str = "") -> list[WrittenTurn]:
        """Write a turn in the forms that the template takes."""
        ...

    def has_call(self, text: str, turns: Variants, /) -> bool:
        """Return True if `text` is the call `ONE` in the form of `turns`."""
        ...

    def stop_inside(self, turn: WrittenTurn, /) -> str:
        """Return the first stop before the end of a turn, or an empty text."""
        ...


class TurnSet:
    """Turns with calls, with reasoning, and with neither. A turn is written when first used."""

    def __init__(self, writer: TemplateWriter) -> None:
        self._writer = writer

    @cached_property
    def calls(self) -> list[Variants]:
        """Turns with calls of strings: alone, several, and beside text. Empty if the template writes no calls."""
        one = self._writer.write(calls=[ONE])
        if not one:
            return []
        return [one, self._writer.write(calls=[ONE, OTHER]), self._writer.write(calls=[ONE], content=ANSWER)]

    @property
    def call_texts(self) -> list[str]:
        """Texts of the turns with calls of strings."""
        return [turn.text for variants in self.calls for turn in variants]

    @cached_property
    def rich(self) -> list[Variants]:
        """Turns with arguments of all types, and without any: templates write some of these unlike their models."""
        return [self._writer.write(calls=[RICH]), self._writer.write(calls=[EMPTY]), self._writer.write(calls=[RICH, EMPTY])]

    @cached_property
    def escaped(self) -> Variants:
        """Turn with a call whose arguments have characters that XML escapes."""
        return self._writer.write(calls=[ESCAPED])

    @cached_property
    def reasoning(self) -> list[Variants]:
        """Turns with reasoning before text and before a call, if the template writes the reasoning."""
        turns = [self._writer.write(content=ANSWER, reasoning=THOUGHT)]
        if self.calls:
            turns += [self._writer.write(calls=[ONE], reasoning=THOUGHT)]
        return [written for turn in turns if (written := [each for each in turn if each.reasoning])]

    @cached_property
    def plain(self) -> Variants:
        """Turn with text alone."""
        return self._writer.write(content=ANSWER)

    @cached_property
    def plain_text(self) -> str:
        """Text of a plain turn, whose tokens are no part of a call or reasoning."""
        return "".join(turn.text for turn in self.plain)

    def has_call(self, text: str) -> bool:
        """Return True if `text` is the first call in the form of the turns."""
        return self._writer.has_call(text, self.calls[0])

    @property
    def text(self) -> str:
        """Text of all turns."""
        turns = [*self.calls, *self.rich, *self.reasoning, self.plain]
        return "\n".join(turn.text for variants in turns for turn in variants)

    def stop_warnings(self) -> Iterator[str]:
        """Yield a warning for each kind of turn with a stop before the end of the turn."""
        for part, turns in (("reasoning", self.reasoning[:1]), ("a call", self.calls[:1])):
            stops = [self._writer.stop_inside(turn) for variants in turns for turn in variants]
            if stops and all(stops):
                yield (
                    f"The chat template writes {stops[0]}, which ends the output of this model, inside a turn with {part}: "
                    "what stands behind it is never generated, and outputs may be empty."
                )
