"""Problems of calls of tools that the request does not define."""

from __future__ import annotations

from collections.abc import Collection

from responses_app.dialects.base import OutputParser
from responses_app.dialects.parser_filter import ParserFilter
from responses_app.protocol.deltas import Call, Delta, OutputProblem
from responses_app.protocol.output_problems import UNKNOWN_TOOL


class UnknownToolFilter(ParserFilter):
    """Parser that reports calls of tools other than `names`. The calls stay calls: the client can answer with an error."""

    def __init__(self, parser: OutputParser, names: Collection[str]) -> None:
        super().__init__(parser)
        self._names = names

    def _passes(self, delta: Delta) -> bool:
        return delta.__class__ is not Call

    def _filter(self, deltas: list[Delta]) -> list[Delta]:
        return [reported for delta in deltas for reported in self._report(delta)]

    def _report(self, delta: Delta) -> list[Delta]:
        is_unknown = isinstance(delta, Call) and delta.name not in self._names
        return [OutputProblem(UNKNOWN_TOOL, item="next"), delta] if is_unknown else [delta]
