"""Base class of parsers that change the deltas of another parser."""

from __future__ import annotations

from responses_app.dialects.base import OutputParser
from responses_app.engine_interface import Chunk
from responses_app.protocol.deltas import Delta


class ParserFilter:
    """Parser that changes the deltas of `parser`. A subclass implements `_filter`, and `_flush` if it holds deltas back."""

    def __init__(self, parser: OutputParser) -> None:
        self._parser = parser

    @property
    def reasoning_tokens(self) -> int:
        return self._parser.reasoning_tokens

    @property
    def done(self) -> bool:
        return self._parser.done

    def feed(self, chunk: Chunk) -> list[Delta]:
        return self._filter(self._parser.feed(chunk))

    def finish(self) -> list[Delta]:
        return [*self._filter(self._parser.finish()), *self._flush()]

    def _filter(self, deltas: list[Delta]) -> list[Delta]:
        """Return the deltas to pass on."""
        raise NotImplementedError

    def _flush(self) -> list[Delta]:
        """Return the deltas that were held back, at the end of the generation."""
        return []
