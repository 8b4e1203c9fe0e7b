"""Outputs read with a format, in pieces, and their texts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from responses_app.dialects.formats.base import OutputFormat
from responses_app.dialects.formats.scanner import FormatScanner
from responses_app.dialects.text.delta_buffer import DeltaBuffer
from responses_app.protocol.deltas import Arguments, Call, Delta, OutputProblem, ReasoningDelta, TextDelta
from tests.support.dialects.call_texts import TOOLS
from tests.support.dialects.parser_driver import joined

SCHEMAS: dict[str, Any] = {str(tool["name"]): tool["parameters"] for tool in TOOLS}


def parse(format: OutputFormat, pieces: Iterable[str], *, cut: bool = False) -> list[Delta]:
    """Read an output in pieces, and return the joined deltas with the problems."""
    buffer, deltas = DeltaBuffer(), list[Delta]()
    scanner = FormatScanner(buffer, format, lambda _: True, SCHEMAS)
    for piece in pieces:
        scanner.feed(piece)
        deltas += buffer.take()
    if cut:
        scanner.cut()
    else:
        scanner.end()
    return joined([*deltas, *buffer.take_rest()], problems=True)


def text_of(deltas: Sequence[Delta]) -> str:
    """Return all texts of an output: answers, reasoning, arguments, problems and names of tools."""
    texts = [delta.text for delta in deltas if isinstance(delta, TextDelta | ReasoningDelta | Arguments | OutputProblem)]
    return " ".join([*texts, *(delta.name for delta in deltas if isinstance(delta, Call))])
