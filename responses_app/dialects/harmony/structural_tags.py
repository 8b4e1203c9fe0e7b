"""Structural tags for constrained harmony output."""

from __future__ import annotations

from responses_app.dialects.base import Turn
from responses_app.dialects.constraints.schema_cost import with_followed_schemas
from responses_app.dialects.constraints.structural_tag import (
    Format,
    any_text,
    arguments,
    constraint,
    json_value,
    literal,
    one_of,
    optional,
    sequence,
    tag,
    text_format,
    triggered,
)
from responses_app.dialects.harmony.own_tools import RAW_RECIPIENTS
from responses_app.dialects.toolset import RECIPIENT, Tool, Toolset
from responses_app.engine_interface import Constraint

_TO = "<|channel|>commentary to="
_OWN_TO = "<|channel|>analysis to="
_TEXT = any_text("<|channel|>", "<|start|>", "<|message|>")


def constrain(turn: Turn, tools: Toolset) -> Constraint | None:
    """Return the constraint of a turn, None for unconstrained output. Raises UnsupportedInput.

    A required call is exactly one call: its stop token ends the generation. A text format constrains the final text only, so
    with tools the model may call instead. Without both the text is free, but text that begins like a call must become a call of
    an offered tool, with valid JSON arguments.
    """
    content = text_format(turn)
    if tools.forced:
        return constraint(sequence(_ANALYSIS, _PREAMBLE, one_of([_call(tool) for tool in with_followed_schemas(tools.forced)])))
    if content is None:
        return _free_with_calls(tools, only_one=not turn.parallel_tool_calls) if tools.offered else None
    final = sequence(literal("<|channel|>final<|message|>"), content)
    if not tools.offered:
        return constraint(sequence(_ANALYSIS, final))
    calls = [_call(tool) for tool in with_followed_schemas(tools.offered)]
    return constraint(sequence(_ANALYSIS, _PREAMBLE, one_of([final, *calls])))


def _message(channel: str) -> Format:
    """Return the format of an optional message and the start of the next; only the first <|end|> ends the message."""
    return optional(sequence(tag(f"<|channel|>{channel}<|message|>", _TEXT, "<|end|>"), literal("<|start|>assistant")))


_ANALYSIS = _message("analysis")
_PREAMBLE = _message("commentary")


def _call(tool: Tool) -> Format:
    return sequence(literal(_headers(tool)[0]), _content(tool))


def _free_with_calls(tools: Toolset, *, only_one: bool) -> Constraint:
    offered = with_followed_schemas(tools.offered)
    tags = [tag(header, _content(tool), "") for tool in offered for header in _headers(tool)]
    triggers = [trigger for trigger in (_TO, _OWN_TO) if any(one["begin"].startswith(trigger) for one in tags)]
    return constraint(triggered(triggers, tags, only_one=only_one))


def _headers(tool: Tool) -> list[str]:
    """Return the headers of a call; gpt-oss's own tools may be called in two channels."""
    if RECIPIENT in tool:
        return [f"{trigger}{tool[RECIPIENT]} code<|message|>" for trigger in (_OWN_TO, _TO)]
    return [f"{_TO}functions.{tool['name']} <|constrain|>json<|message|>"]


def _content(tool: Tool) -> Format:
    """Return the format of a call's text: code, or JSON arguments. gpt-oss's own tools have more arguments than declared."""
    if tool.get(RECIPIENT) in RAW_RECIPIENTS:
        return _TEXT
    if RECIPIENT in tool:
        return json_value({"type": "object"})
    return arguments(tool)
