"""What a constrained harmony answer looks like."""

from __future__ import annotations

from responses_app.dialects.base import Turn
from responses_app.dialects.constraints.structural_tag import (
    Format,
    answer,
    any_text,
    arguments,
    constraint,
    literal,
    one_of,
    optional,
    sequence,
    tag,
    triggered,
)
from responses_app.dialects.tools.selection import Tool, Toolset
from responses_app.engine_interface import Constraint

_TO = "<|channel|>commentary to="
_TEXT = any_text("<|channel|>", "<|start|>", "<|message|>")


def constrain(turn: Turn, tools: Toolset) -> Constraint | None:
    """The constraint of a turn, None if the answer is free. Raises BadTurn.

    A required call is one call: its stop token ends the generation. A format binds the final text only, so that with tools
    at hand the model may call one instead (§3.14). Without either the answer is free, but what begins like a call becomes a
    call of a tool that was offered, with arguments that parse (§3.16).
    """
    content = answer(turn)
    if tools.forced:
        return constraint(sequence(_ANALYSIS, _PREAMBLE, one_of([_call(tool) for tool in tools.forced])))
    if content is None:
        return _free(tools, only_one=not turn.parallel_tool_calls) if tools.offered else None
    final = sequence(literal("<|channel|>final<|message|>"), content)
    if not tools.offered:
        return constraint(sequence(_ANALYSIS, final))
    calls = [_call(tool) for tool in tools.offered]
    return constraint(sequence(_ANALYSIS, _PREAMBLE, one_of([final, *calls])))


def _message(channel: str) -> Format:
    """A message or none, and the beginning of the next; only its first <|end|> ends it."""
    return optional(sequence(tag(f"<|channel|>{channel}<|message|>", _TEXT, "<|end|>"), literal("<|start|>assistant")))


_ANALYSIS = _message("analysis")
_PREAMBLE = _message("commentary")


def _call(tool: Tool) -> Format:
    return sequence(literal(_header(tool)), arguments(tool))


def _free(tools: Toolset, *, only_one: bool) -> Constraint:
    return constraint(triggered(_TO, [tag(_header(tool), arguments(tool), "") for tool in tools.offered], only_one=only_one))


def _header(tool: Tool) -> str:
    return f"{_TO}functions.{tool['name']} <|constrain|>json<|message|>"
