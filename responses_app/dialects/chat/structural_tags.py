"""Structural tags for the constrained output of chat models with `<think>` and Hermes tool calls."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto
from typing import TypeAlias

from responses_app.dialects.base import Turn
from responses_app.dialects.chat.scanner import CALL, END_CALL, END_THINK, THINK
from responses_app.dialects.constraints.structural_tag import (
    Format,
    any_text,
    arguments,
    constraint,
    literal,
    one_of,
    optional,
    regex,
    sequence,
    tag,
    tags,
    text_format,
    triggered,
)
from responses_app.dialects.tools.selection import Tool, Toolset
from responses_app.engine_interface import Constraint

_GAP = regex(r"\n{0,2}")
ReasoningMarkers: TypeAlias = tuple[str, str]


class ReasoningStart(Enum):
    """Ways in which the output can begin with reasoning."""

    OPEN = auto()  # the prompt ends in <think>
    FREE = auto()  # the model may begin with <think>
    NEVER = auto()


def reasoning_formats(thinking: ReasoningStart, marks: ReasoningMarkers = (THINK, END_THINK)) -> list[Format]:
    """Return the formats allowed before the answer: the reasoning."""
    start, end = marks
    table = {
        # The end marker is excluded from the reasoning; otherwise the model could write unconstrained text between two end
        # markers.
        ReasoningStart.OPEN: [any_text(start, CALL, end), literal(end), _GAP],
        ReasoningStart.FREE: [optional(sequence(tag(start, any_text(start, CALL), end), _GAP))],
        ReasoningStart.NEVER: [],
    }
    return table[thinking]


def constrain(turn: Turn, tools: Toolset, thinking: ReasoningStart) -> Constraint | None:
    """Return the constraint of a turn, None for unconstrained output. Raises UnsupportedInput.

    A named tool is called once; required tools at least once, exactly once with `parallel_tool_calls: false`. A text format
    constrains the text only, so with tools the model may call instead. Without both the text is free, but text that begins like
    a call must become a call of an offered tool, with valid JSON arguments.
    """
    content = text_format(turn)
    named = len(tools.forced) == 1
    if tools.forced:
        return constraint(
            sequence(*reasoning_formats(thinking), _calls(tools.forced, only_one=named or not turn.parallel_tool_calls))
        )
    if content is None:
        return _free_with_calls(tools, only_one=not turn.parallel_tool_calls) if tools.offered else None
    if tools.offered:
        content = one_of([content, _calls(tools.offered, only_one=not turn.parallel_tool_calls)])
    return constraint(sequence(*reasoning_formats(thinking), content))


def _free_with_calls(tools: Toolset, *, only_one: bool) -> Constraint:
    return constraint(triggered(CALL, [_call(tool) for tool in tools.offered], only_one=only_one))


def _calls(tools: Sequence[Tool], *, only_one: bool) -> Format:
    return tags([_call(tool) for tool in tools], "\n", only_one=only_one)


def _call(tool: Tool) -> Format:
    return tag(f'{CALL}\n{{"name": "{tool["name"]}", "arguments": ', arguments(tool), f"}}\n{END_CALL}")
