"""Prompts that end with the beginning of a message: the model goes on with the recipient, a tool or the user."""

from __future__ import annotations

from dataclasses import replace

from responses_app.dialects.constraints.structural_tag import literal
from responses_app.dialects.families.format_reader import FormatReader
from responses_app.dialects.families.turn_set import TurnSet
from responses_app.dialects.families.written_turns import ANSWER
from responses_app.dialects.formats.base import OutputFormat
from responses_app.dialects.formats.syntaxes.named_calls import NamedCalls


def with_opening(output: OutputFormat, prompt: str, turns: TurnSet, reader: FormatReader) -> OutputFormat:
    """Return `output` with the beginning of a call as the opening if `prompt` ends so and the turns are read then."""
    calls, head = output.calls, turns.plain_text.partition(ANSWER)[0]
    if calls is None or not isinstance(calls.syntax, NamedCalls) or output.opening or not head.strip():
        return output
    opening = next((begin for begin in calls.begins if prompt.endswith(begin)), "")
    opened = replace(
        output,
        calls=replace(calls, syntax=replace(calls.syntax, opening=opening)),
        opening=opening,
        ignored=(*output.ignored, opening + head),
        answer_head=literal(head),
    )
    return opened if opening and reader.output_reads(reader.reads_all, [*turns.calls, turns.plain], opened) else output
