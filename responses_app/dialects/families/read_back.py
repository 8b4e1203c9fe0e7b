"""Reading of written turns with an output format: the calls and the reasoning must be those that the template has written."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from responses_app.dialects.families.written_turns import SCHEMAS, WrittenTurn
from responses_app.dialects.formats.base import OutputFormat
from responses_app.dialects.formats.scanner import FormatScanner
from responses_app.dialects.text.delta_buffer import DeltaBuffer
from responses_app.protocol.deltas import Arguments, Call, Delta, ReasoningDelta, TextDelta

# Length of the pieces in which a turn is read a second time.
_PIECE = 3


@dataclass(frozen=True, slots=True)
class ReadTurn:
    """Turn as a format reads it. Arguments that are no JSON are None."""

    reasoning: str
    text: str
    calls: tuple[tuple[str, Any], ...]


def read_turn(turn: WrittenTurn, output: OutputFormat, hidden: Collection[str], piece: int = 0) -> ReadTurn:
    """Read a turn without the special tokens `hidden`, as a whole or in pieces of `piece` characters."""
    text = _without(turn.text, hidden)
    deltas = DeltaBuffer()
    scanner = FormatScanner(deltas, output, SCHEMAS.__contains__, SCHEMAS, thinking=_is_open(turn, output))
    if output.opening and turn.opening.endswith(output.opening):
        scanner.feed(output.opening)
    for at in range(0, len(text), piece or len(text) or 1):
        scanner.feed(text[at : at + (piece or len(text))])
    scanner.end()
    return _collect(deltas.take_rest())


def compact(text: str) -> str:
    """Return a text without white space."""
    return "".join(text.split())


def reads_calls(turn: WrittenTurn, output: OutputFormat, hidden: Collection[str]) -> bool:
    """Return True if `output` reads the calls of a turn, whole and in small pieces."""
    return all(read_turn(turn, output, hidden, piece).calls == turn.calls for piece in (0, _PIECE))


def reads_keys(turn: WrittenTurn, output: OutputFormat, hidden: Collection[str]) -> bool:
    """Return True if `output` reads the names of the calls and the keys of their arguments."""
    read = read_turn(turn, output, hidden)
    return [(name, _keys(values)) for name, values in read.calls] == [(name, _keys(values)) for name, values in turn.calls]


def reads_entities(turn: WrittenTurn, output: OutputFormat, hidden: Collection[str]) -> bool:
    """Return True if the values of a turn have entities of XML, which `output` reads as they stand."""
    written = [{key: html.escape(value, quote=False) for key, value in arguments.items()} for _, arguments in turn.calls]
    values = [arguments for _, arguments in read_turn(turn, output, hidden).calls]
    return values == written and bool(turn.calls)


def reads_reasoning(turn: WrittenTurn, output: OutputFormat, hidden: Collection[str]) -> bool:
    """Return True if `output` separates the reasoning of a turn from the text, whole and in small pieces."""
    reads = [read_turn(turn, output, hidden, piece) for piece in (0, _PIECE)]
    return all(read.reasoning == turn.reasoning and turn.content in read.text for read in reads)


def reads_all_parts(turn: WrittenTurn, output: OutputFormat, hidden: Collection[str]) -> bool:
    """Return True if `output` reads the reasoning and, in a turn without calls, the text and nothing else."""
    if not reads_reasoning(turn, output, hidden):
        return False
    return bool(turn.calls) or read_turn(turn, output, hidden).text == turn.content


def _is_open(turn: WrittenTurn, output: OutputFormat) -> bool:
    """Return True if a turn begins inside of reasoning. Some templates write the end marker alone, and open the prompt."""
    if output.reasoning is None:
        return False
    ends = [turn.text.index(end) for end in output.reasoning.ends if end in turn.text]
    before = turn.text[: min(ends, default=0)]
    is_closed_only = turn.reasoning in before and not any(begin in before for begin in output.reasoning.begins)
    return turn.opening.rstrip().endswith(output.reasoning.begins) or bool(turn.reasoning and is_closed_only)


def _without(text: str, hidden: Collection[str]) -> str:
    longest_first = sorted(hidden, key=len, reverse=True)
    return re.sub("|".join(map(re.escape, longest_first)), "", text) if longest_first else text


def _collect(deltas: Sequence[Delta]) -> ReadTurn:
    calls: list[tuple[str, list[str]]] = []
    for delta in deltas:
        if isinstance(delta, Call):
            calls.append((delta.name, []))
        elif isinstance(delta, Arguments) and calls:
            calls[-1][1].append(delta.text)
    return ReadTurn(
        "".join(_texts(deltas, ReasoningDelta)).strip(),
        "".join(_texts(deltas, TextDelta)).strip(),
        tuple((name, _json("".join(parts))) for name, parts in calls),
    )


def _texts(deltas: Sequence[Delta], kind: type[ReasoningDelta] | type[TextDelta]) -> Iterator[str]:
    return (delta.text for delta in deltas if isinstance(delta, kind))


def _keys(arguments: Any) -> Any:
    return set(arguments) if isinstance(arguments, Mapping) else arguments


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None
