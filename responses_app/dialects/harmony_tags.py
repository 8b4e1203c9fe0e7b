"""What a constrained harmony answer looks like."""

from __future__ import annotations

from responses_app.dialects.base import Turn
from responses_app.dialects.tags import (
    Format,
    answer,
    arguments,
    const,
    constraint,
    either,
    free,
    maybe,
    sequence,
    tag,
)
from responses_app.dialects.toolset import Tool, Toolset
from responses_app.engines.border import Constraint

_NEXT = "<|end|><|start|>assistant"
_TEXT = free("<|channel|>", "<|start|>", "<|message|>")
_ANALYSIS = maybe(tag("<|channel|>analysis<|message|>", _TEXT, _NEXT))
_PREAMBLE = maybe(tag("<|channel|>commentary<|message|>", _TEXT, _NEXT))


def constrain(turn: Turn, tools: Toolset) -> Constraint | None:
    """The constraint of a turn, None if the answer is free. Raises BadTurn.

    A required call is one call: its stop token ends the generation. A format binds the final text only, so that with tools
    at hand the model may call one instead (§3.14).
    """
    content = answer(turn)
    if tools.forced:
        return constraint(sequence(_ANALYSIS, _PREAMBLE, either([_call(tool) for tool in tools.forced])))
    if content is None:
        return None
    final = sequence(const("<|channel|>final<|message|>"), content)
    if not tools.offered:
        return constraint(sequence(_ANALYSIS, final))
    calls = [_call(tool) for tool in tools.offered]
    return constraint(sequence(_ANALYSIS, _PREAMBLE, either([final, *calls])))


def _call(tool: Tool) -> Format:
    begin = f"<|channel|>commentary to=functions.{tool['name']} <|constrain|>json<|message|>"
    return sequence(const(begin), arguments(tool))
