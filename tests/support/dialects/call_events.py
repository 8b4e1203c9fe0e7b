"""Helpers to collect the deltas of a call."""

from __future__ import annotations

from collections.abc import Iterator

from responses_app.engine_interface import Chunk
from responses_app.protocol.deltas import Delta


class ScriptedParser:
    """Output parser that ignores tokens and returns the given deltas singly."""

    reasoning_tokens, unread_tokens, stop_sequence = 0, 0, None
    done = False

    def __init__(self, pieces: list[Delta]) -> None:
        self._pieces: Iterator[Delta] = iter(pieces)

    def feed(self, chunk: Chunk) -> list[Delta]:
        del chunk
        return [piece for piece in [next(self._pieces, None)] if piece is not None]

    def finish(self) -> list[Delta]:
        return list(self._pieces)
