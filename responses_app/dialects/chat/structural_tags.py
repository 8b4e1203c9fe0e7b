"""What a constrained answer of a chat model with `<think>` and Hermes calls looks like."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto
from typing import TypeAlias

from responses_app.dialects.base import Turn
from responses_app.dialects.chat.scanner import CALL, END_CALL, END_THINK, THINK
from responses_app.dialects.constraints.structural_tag import (
    Format,
    answer,
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
    triggered,
)
from responses_app.dialects.tools.selection import Tool, Toolset
from responses_app.engine_interface import Constraint

_GAP = regex(r"\n{0,2}")
ReasoningMarkers: TypeAlias = tuple[str, str]


class ReasoningStart(Enum):
    """How the answer begins."""

    OPEN = auto()  # the prompt ends in <think>
    FREE = auto()  # the model may open it
    NEVER = auto()


def before(thinking: ReasoningStart, marks: ReasoningMarkers = (THINK, END_THINK)) -> list[Format]:
    """What may come before the answer itself."""
    start, end = marks
    table = {
        # What ends it must not stand in it, or the model could answer as it likes between two such marks.
        ReasoningStart.OPEN: [any_text(start, CALL, end), literal(end), _GAP],
        ReasoningStart.FREE: [optional(sequence(tag(start, any_text(start, CALL), end), _GAP))],
        ReasoningStart.NEVER: [],
    }
    return table[thinking]


def constrain(turn: Turn, tools: Toolset, thinking: ReasoningStart) -> Constraint | None:
    """The constraint of a turn, None if the answer is free. Raises BadTurn.

    A named tool is called once; required ones at least once, and once only with `parallel_tool_calls: false`. A format
    binds the text only, so that with tools at hand the model may call instead (§3.14). Without either the answer is free, but
    what begins like a call becomes a call of a tool that was offered, with arguments that parse (§3.16).
    """
    content = answer(turn)
    named = len(tools.forced) == 1
    if tools.forced:
        return constraint(sequence(*before(thinking), _calls(tools.forced, only_one=named or not turn.parallel_tool_calls)))
    if content is None:
        return _free(tools, only_one=not turn.parallel_tool_calls) if tools.offered else None
    if tools.offered:
        content = one_of([content, _calls(tools.offered, only_one=not turn.parallel_tool_calls)])
    return constraint(sequence(*before(thinking), content))


def _free(tools: Toolset, *, only_one: bool) -> Constraint:
    return constraint(triggered(CALL, [_call(tool) for tool in tools.offered], only_one=only_one))


def _calls(tools: Sequence[Tool], *, only_one: bool) -> Format:
    return tags([_call(tool) for tool in tools], "\n", only_one=only_one)


def _call(tool: Tool) -> Format:
    return tag(f'{CALL}\n{{"name": "{tool["name"]}", "arguments": ', arguments(tool), f"}}\n{END_CALL}")
