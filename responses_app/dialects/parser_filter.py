"""Base class of parsers on top of an inner parser."""

from __future__ import annotations

from responses_app.dialects.base import OutputParser
from responses_app.engine_interface import Chunk
from responses_app.protocol.deltas import Delta


class ParserFilter:
    """Parser with changed deltas of `parser`. A subclass implements `_filter`, and `_flush` if deltas are held back."""

    def __init__(self, parser: OutputParser) -> None:
        self._parser = parser

    @property
    def reasoning_tokens(self) -> int:
        """Number of reasoning tokens so far."""
        return self._parser.reasoning_tokens

    @property
    def done(self) -> bool:
        """True once no further output can produce deltas."""
        return self._parser.done

    @property
    def stop_sequence(self) -> str | None:
        """Stop sequence that has ended the text."""
        return self._parser.stop_sequence

    @property
    def unread_tokens(self) -> int:
        """Number of tokens of the last chunk behind the end."""
        return self._parser.unread_tokens

    def feed(self, chunk: Chunk) -> list[Delta]:
        """Return the deltas completed by `chunk`."""
        deltas = self._parser.feed(chunk)
        return deltas if len(deltas) == 1 and self._passes(deltas[0]) else self._filter(deltas)

    def finish(self) -> list[Delta]:
        """End the generation and return the deltas held back."""
        return [*self._filter(self._parser.finish()), *self._flush()]

    def _passes(self, delta: Delta) -> bool:
        """Return True if `delta`, the only one of a chunk, is passed on as it is."""
        del delta
        return False

    def _filter(self, deltas: list[Delta]) -> list[Delta]:
        """Return the deltas to pass on."""
        raise NotImplementedError

    def _flush(self) -> list[Delta]:
        """Return the deltas held back, at the end of the generation."""
        return []
