"""Stop sequences: the answer ends where its text says one of them; reasoning and calls are not looked at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from responses_app.dialects.base import OutputParser
from responses_app.dialects.parser_filter import ParserFilter
from responses_app.protocol.deltas import Delta, TextDelta


def with_stop_sequences(parser: OutputParser, stops: Sequence[str]) -> OutputParser:
    """Return a parser that ends before any of `stops`, or `parser` itself if there are none."""
    return StopSequenceFilter(parser, stops) if stops else parser


class StopSequenceFilter(ParserFilter):
    """Parser that ends at a stop sequence. Text that may begin a stop sequence is held back, in whole deltas."""

    def __init__(self, parser: OutputParser, stops: Sequence[str]) -> None:
        super().__init__(parser)
        self._stops = stops
        self._held: list[TextDelta] = []
        self._stopped = False

    @property
    def done(self) -> bool:
        return self._stopped or super().done

    def _filter(self, deltas: list[Delta]) -> list[Delta]:
        return [passed for delta in deltas for passed in self._pass(delta)]

    def _flush(self) -> list[Delta]:
        return [] if self._stopped else self._rest()

    def _pass(self, piece: Delta) -> list[Delta]:
        if self._stopped:
            return []
        if not isinstance(piece, TextDelta):
            return [*self._rest(), piece]
        # Another phase is another message.
        before = self._rest() if self._held and self._held[-1].phase != piece.phase else []
        self._held.append(piece)
        return before + self._certain()

    def _certain(self) -> list[Delta]:
        """What is said by now: everything before a stop sequence, or before what may become one.

        The first that is complete counts, and of several that one character completes the longest: no grouping changes that.
        """
        text = "".join(piece.text for piece in self._held)
        found = [(at + len(stop), at) for stop in self._stops if (at := text.find(stop)) >= 0]
        if found:
            self._stopped = True
            return self._until(min(found)[1], cut=True)
        return self._until(len(text) - max(_begun(text, stop) for stop in self._stops))

    def _until(self, end: int, *, cut: bool = False) -> list[Delta]:
        said: list[Delta] = []
        while self._held and len(self._held[0].text) <= end:
            end -= len(self._held[0].text)
            said.append(self._held.pop(0))
        if cut and end:
            said.append(replace(self._held[0], text=self._held[0].text[:end]))
        return said

    def _rest(self) -> list[Delta]:
        rest, self._held = list[Delta](self._held), []
        return rest


def _begun(text: str, stop: str) -> int:
    """How many characters at the end of the text are the beginning of a stop sequence."""
    most = min(len(text), len(stop) - 1)
    return next((size for size in range(most, 0, -1) if text.endswith(stop[:size])), 0)
