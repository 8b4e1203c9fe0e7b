"""Stop sequences: end the output text before a stop sequence; reasoning and calls are ignored."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from responses_app.dialects.base import OutputParser
from responses_app.dialects.parser_filter import ParserFilter
from responses_app.engine_interface import Chunk
from responses_app.protocol.deltas import Arguments, Delta, OutputProblem, ReasoningDelta, TextDelta


def with_stop_sequences(parser: OutputParser, stops: Sequence[str]) -> OutputParser:
    """Return a parser ending before any of `stops`, or `parser` itself without stop sequences."""
    return StopSequenceFilter(parser, stops) if stops else parser


class StopSequenceFilter(ParserFilter):
    """Parser ending at a stop sequence. Text that may begin a stop sequence is held back, in whole deltas."""

    def __init__(self, parser: OutputParser, stops: Sequence[str]) -> None:
        super().__init__(parser)
        self._stops = stops
        self._held: list[TextDelta | OutputProblem] = []  # problems stay at their places between the texts
        self._match: str | None = None
        self._unread_tokens = 0

    @property
    def done(self) -> bool:
        """True once a stop sequence was found, or the inner parser is done."""
        return self._match is not None or super().done

    @property
    def stop_sequence(self) -> str | None:
        """Stop sequence that has ended the text."""
        return self._match

    @property
    def unread_tokens(self) -> int:
        """Number of tokens of the last chunk behind the end of the stop sequence, or behind the end of the inner parser."""
        return self._unread_tokens

    def feed(self, chunk: Chunk) -> list[Delta]:
        """Return the deltas completed by `chunk`, which is read token by token."""
        if len(chunk.tokens) < 2:
            return super().feed(chunk)
        deltas: list[Delta] = []
        for index, token in enumerate(chunk.tokens):
            deltas += super().feed(replace(chunk, tokens=(token,), logprobs=chunk.logprobs[index : index + 1]))
            if self.done:
                self._unread_tokens = len(chunk.tokens) - index - 1
                break
        return _joined(deltas)

    def _filter(self, deltas: list[Delta]) -> list[Delta]:
        return [released_delta for delta in deltas for released_delta in self._filter_delta(delta)]

    def _flush(self) -> list[Delta]:
        return [] if self._match is not None else self._release_all()

    def _filter_delta(self, delta: Delta) -> list[Delta]:
        if self._match is not None:
            return []
        if isinstance(delta, OutputProblem) and self._held:
            self._held.append(delta)
            return []
        if not isinstance(delta, TextDelta):
            return [*self._release_all(), delta]
        # A change of phase begins a new message.
        last = next((held for held in reversed(self._held) if isinstance(held, TextDelta)), None)
        before = self._release_all() if last is not None and last.phase != delta.phase else []
        self._held.append(delta)
        return before + self._release_certain()

    def _release_certain(self) -> list[Delta]:
        """Release the text before a stop sequence, or before a possible beginning of one.

        The first complete sequence counts, and the longest of several completed by the same character, so the grouping of
        tokens has no effect.
        """
        text = "".join(map(_text, self._held))
        matches = [(at + len(stop), at, stop) for stop in self._stops if (at := text.find(stop)) >= 0]
        if matches:
            _, start, self._match = min(matches)
            return self._release_until(start, cut=True)
        return self._release_until(len(text) - max(_overlap(text, stop) for stop in self._stops))

    def _release_until(self, end: int, *, cut: bool = False) -> list[Delta]:
        released: list[Delta] = []
        while self._held and len(_text(self._held[0])) <= end:
            end -= len(_text(self._held[0]))
            released.append(self._held.pop(0))
        if cut and end:
            released.append(replace(self._held[0], text=_text(self._held[0])[:end]))
        return released

    def _release_all(self) -> list[Delta]:
        held_deltas, self._held = list[Delta](self._held), []
        return held_deltas


def _joined(deltas: Iterable[Delta]) -> list[Delta]:
    """Join neighbours of the same item: an event of each token would cost more."""
    joined: list[Delta] = []
    for delta in deltas:
        last = joined[-1] if joined else None
        if isinstance(delta, TextDelta) and isinstance(last, TextDelta) and delta.phase == last.phase:
            joined[-1] = replace(last, text=last.text + delta.text, logprobs=[*last.logprobs, *delta.logprobs])
        elif isinstance(delta, ReasoningDelta | Arguments) and isinstance(last, type(delta)):
            joined[-1] = replace(last, text=last.text + delta.text)
        else:
            joined.append(delta)
    return joined


def _text(delta: TextDelta | OutputProblem) -> str:
    return delta.text if isinstance(delta, TextDelta) else ""


def _overlap(text: str, stop: str) -> int:
    """Return the length of the longest beginning of `stop` at the end of `text`."""
    maximum = min(len(text), len(stop) - 1)
    return next((size for size in range(maximum, 0, -1) if text.endswith(stop[:size])), 0)
