"""Search for calls of an unknown form in the text of a model whose calls are not read."""

from __future__ import annotations

import re
from collections.abc import Sequence

from responses_app.dialects.base import OutputParser
from responses_app.dialects.parser_filter import ParserFilter
from responses_app.protocol.deltas import Delta, EndItem, TextDelta
from responses_app.protocol.output_problems import UNKNOWN_CALL_FORM, OutputProblem


class UnknownCallFilter(ParserFilter):
    """Parser that reports an unknown form of a call: a text of `heads`, or a name of `tools` before a bracket or quote.

    A problem follows the text that completes the evidence, once for each item.
    """

    def __init__(self, parser: OutputParser, heads: Sequence[str], tools: Sequence[str]) -> None:
        super().__init__(parser)
        calls = [rf"(?<![\w.-]){re.escape(name)}[\"']?\s{{0,8}}[<({{\[|｜]" for name in tools]
        self._pattern = re.compile("|".join([*map(re.escape, heads), *calls]) or r"(?!)")
        self._longest = max(map(len, [*heads, *tools]), default=0) + 12
        self._tail = ""
        self._is_reported = False

    def _filter(self, deltas: list[Delta]) -> list[Delta]:
        return [each for delta in deltas for each in self._with_problem(delta)]

    def _with_problem(self, delta: Delta) -> list[Delta]:
        if isinstance(delta, EndItem):
            self._tail, self._is_reported = "", False
        if not isinstance(delta, TextDelta) or self._is_reported:
            return [delta]
        text = self._tail + delta.text
        self._tail = text[-self._longest :]
        if not self._pattern.search(text):
            return [delta]
        self._is_reported = True
        return [delta, OutputProblem(UNKNOWN_CALL_FORM)]
