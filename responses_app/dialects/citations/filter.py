"""Filter of deltas that adds the annotations of citations to generated text."""

from __future__ import annotations

from collections.abc import Sequence

from responses_app.dialects.base import OutputParser
from responses_app.dialects.citations.scanner import CitationScanner, Piece
from responses_app.dialects.citations.sources import Sources
from responses_app.dialects.parser_filter import ParserFilter
from responses_app.protocol.deltas import Annotation, Arguments, Delta, Json, OutputProblem, ReasoningDelta, TextDelta


class CitationFilter(ParserFilter):
    """Parser whose text has annotations, for the citations of `sources`.

    The log-probabilities of tokens stay in order, and come with the text of their token or with the next text. A token of a marker
    has no text of its own any more.
    """

    def __init__(self, parser: OutputParser, sources: Sources) -> None:
        super().__init__(parser)
        self._sources = sources
        self._scanner: CitationScanner | None = None
        self._open = TextDelta("")
        self._logprobs: list[Json] = []
        self._problems: list[Delta] = []

    def _passes(self, delta: Delta) -> bool:
        return (
            self._scanner is None and delta.__class__ in (ReasoningDelta, Arguments) and not (self._logprobs or self._problems)
        )

    def _filter(self, deltas: list[Delta]) -> list[Delta]:
        return [one for delta in deltas for one in self._map(delta)]

    def _flush(self) -> list[Delta]:
        scanner, self._scanner = self._scanner, None
        released = [] if scanner is None else self._release(scanner.finish())
        if self._logprobs:
            released.append(TextDelta("", self._take_logprobs(), self._open.phase))
        return [*released, *self._take_problems()]

    def _map(self, delta: Delta) -> list[Delta]:
        if isinstance(delta, OutputProblem):
            return self._map_problem(delta)
        if not isinstance(delta, TextDelta):
            return [*self._flush(), delta]
        # A change of phase begins a new message.
        before = self._flush() if delta.phase != self._open.phase else []
        self._scanner, self._open = self._scanner or CitationScanner(self._sources), delta
        self._logprobs += delta.logprobs
        return [*before, *self._release(self._scanner.feed(delta.text))]

    def _map_problem(self, problem: OutputProblem) -> list[Delta]:
        """Hold a problem back with the text before the problem."""
        if self._scanner is None or not self._scanner.holds_text:
            return [problem]
        self._problems.append(problem)
        return []

    def _release(self, pieces: Sequence[Piece]) -> list[Delta]:
        deltas: list[Delta] = []
        for piece in pieces:
            if isinstance(piece, str):
                deltas.append(TextDelta(piece, self._take_logprobs(), self._open.phase))
            else:
                deltas.append(Annotation(piece))
        return [*deltas, *self._take_problems()] if deltas else []

    def _take_logprobs(self) -> Sequence[Json]:
        logprobs, self._logprobs = self._logprobs, []
        return logprobs or ()

    def _take_problems(self) -> list[Delta]:
        problems, self._problems = self._problems, []
        return problems
