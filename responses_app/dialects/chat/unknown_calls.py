"""Search for calls of an unknown form in the text of a model whose calls are not read."""

from __future__ import annotations

import re
from collections.abc import Sequence

from responses_app.dialects.base import OutputParser
from responses_app.dialects.formats.base import NAME
from responses_app.dialects.parser_filter import ParserFilter
from responses_app.protocol.deltas import Delta, EndItem, TextDelta
from responses_app.protocol.output_problems import UNKNOWN_CALL_FORM, OutputProblem


class UnknownCallFilter(ParserFilter):
    """Parser that reports an unknown form of a call: a text of `heads`, or a name of `tools` before a bracket or quote.

    A head may have the name of a tool, in the place of `NAME`.

    The problem stands at the end of the item, so that the grouping of tokens has no effect.
    """

    def __init__(self, parser: OutputParser, heads: Sequence[str], tools: Sequence[str]) -> None:
        super().__init__(parser)
        calls = [rf"(?<![\w.-]){re.escape(name)}[\"']?\s{{0,8}}[<({{\[|｜]" for name in tools]
        texts = list(dict.fromkeys(head.replace(NAME, name) for head in heads for name in tools))
        self._pattern = re.compile("|".join([*map(re.escape, texts), *calls]) or r"(?!)")
        self._longest = max(map(len, [*texts, *tools]), default=0) + 12
        self._tail = ""
        self._is_found = False

    def _filter(self, deltas: list[Delta]) -> list[Delta]:
        return [each for delta in deltas for each in self._with_problem(delta)]

    def _flush(self) -> list[Delta]:
        """Return the problem of an item that the end of the generation has cut."""
        return self._end_item()

    def _with_problem(self, delta: Delta) -> list[Delta]:
        if isinstance(delta, EndItem):
            return [*self._end_item(), delta]
        if isinstance(delta, TextDelta) and not self._is_found:
            text = self._tail + delta.text
            self._is_found = self._pattern.search(text) is not None
            self._tail = text[-self._longest :]
        return [delta]

    def _end_item(self) -> list[Delta]:
        problems: list[Delta] = [OutputProblem(UNKNOWN_CALL_FORM)] if self._is_found else []
        self._tail, self._is_found = "", False
        return problems
