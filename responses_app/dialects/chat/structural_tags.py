"""Structural tags for the constrained output of chat models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import Enum, auto

from responses_app.dialects.base import Turn, UnsupportedInput
from responses_app.dialects.constraints.schema_cost import with_followed_schemas
from responses_app.dialects.constraints.structural_tag import (
    Format,
    any_text,
    constraint,
    limit_arguments,
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
from responses_app.dialects.formats.base import CallFormat, OutputFormat
from responses_app.dialects.toolset import Tool, Toolset
from responses_app.engine_interface import Constraint

# Templates of some families have white space between the prompt and the output, and behind the reasoning.
_GAP = regex(r"[ \n]{0,3}")
_BREAK = regex(r"\n?")
# Fewest characters of a text with which calls begin that free text may not contain.
_MIN_TRIGGER = 3


class ReasoningStart(Enum):
    """Ways in which the output can begin with reasoning."""

    OPEN = auto()  # the prompt ends in <think>
    ALWAYS = auto()  # the model reasons, with or without <think>
    FREE = auto()  # the model may begin with <think>
    NEVER = auto()


def constrain(turn: Turn, tools: Toolset, output: OutputFormat, thinking: ReasoningStart) -> Constraint | None:
    """Return the constraint of a turn, None for unconstrained output. Raises UnsupportedInput.

    A named tool is called once; required tools at least once, exactly once with `parallel_tool_calls: false`. A text format
    constrains the text only, so with tools the model may call instead. Without both the text is free, but text that begins like
    a call must become a call of an offered tool, if a tool is strict or the format asks for that.
    """
    content = text_format(turn)
    if turn.max_reasoning_length is not None:
        limits = turn.schema_limits
        tools = replace(tools, offered=limit_arguments(tools.offered, limits), forced=limit_arguments(tools.forced, limits))
    before = reasoning_formats(thinking, output, turn.max_reasoning_length)
    if tools.forced:
        only_one = len(tools.forced) == 1 or not turn.parallel_tool_calls
        content = _behind(output.call_head, _calls(_call_format(output), tools.forced, only_one=only_one))
    elif content is None:
        return _free_with_calls(turn, tools, output, before)
    else:
        content = _answer(output, content)
        if tools.offered and output.calls is not None:
            calls = _calls(output.calls, tools.offered, only_one=not turn.parallel_tool_calls)
            content = one_of([content, _behind(output.call_head, calls)])
    return constraint(sequence(*before, content))


def reasoning_formats(thinking: ReasoningStart, output: OutputFormat, max_length: int | None = None) -> list[Format]:
    """Return the formats allowed before the answer: the reasoning, of at most `max_length` characters."""
    if output.reasoning is None:
        return [_GAP]
    start, end = output.reasoning.begins[0], output.reasoning.ends[0]
    # The end marker is excluded from the reasoning; otherwise the model could write unconstrained text between two end markers.
    trigger = output.calls.syntax.trigger if output.calls else ""
    text = any_text(start, end, *([trigger] if len(trigger) >= _MIN_TRIGGER else []))
    if max_length is not None:
        text = regex(f"[^<]{{0,{max_length}}}")
    table = {
        ReasoningStart.OPEN: [text, literal(end), _GAP],
        ReasoningStart.ALWAYS: [_GAP, optional(literal(start)), text, literal(end), _GAP],
        # Some models begin with the end marker where they do not reason.
        ReasoningStart.FREE: [_GAP, optional(sequence(one_of([tag(start, text, end), literal(end)]), _GAP))],
        ReasoningStart.NEVER: [_GAP],
    }
    return table[thinking]


def _behind(head: Format | None, content: Format) -> Format:
    """Return `content`, with `head` allowed before `content`."""
    return sequence(optional(head), content) if head else content


def _answer(output: OutputFormat, content: Format) -> Format:
    """Return `content` with the markers that may stand around an answer."""
    content = _behind(output.answer_head, content)
    if not output.answer_head or not output.ignored:
        return content
    return sequence(content, optional(sequence(_BREAK, one_of([literal(marker) for marker in output.ignored]))))


def _call_format(output: OutputFormat) -> CallFormat:
    if output.calls is None:
        raise UnsupportedInput("This model has no format for tool calls.", "tool_choice", "unsupported_value")
    return output.calls


def _free_with_calls(turn: Turn, tools: Toolset, output: OutputFormat, before: list[Format]) -> Constraint | None:
    """Return the constraint of free text.

    With a limit of the reasoning `before` the text, all calls are constrained, and the text contains no other reasoning.
    """
    limited, calls = turn.max_reasoning_length is not None, output.calls
    no_more = output.reasoning.begins[:1] if limited and output.reasoning is not None else ()
    if calls is None or not tools.offered:
        return None
    if not limited and not calls.always_constrained and not any(tool.get("strict") for tool in tools.offered):
        return None
    only_one, trigger = not turn.parallel_tool_calls, calls.syntax.trigger
    tool_tags = calls.syntax.tags(with_followed_schemas(tools.offered), only_one=only_one)
    formats = [each for each in tool_tags if each["begin"].startswith(trigger)]
    # A character that may also be text, as "<", begins a call only with the name.
    triggers = [trigger] if len(trigger) >= _MIN_TRIGGER else list(dict.fromkeys(str(each["begin"]) for each in formats))
    text = triggered(triggers, formats, *no_more, only_one=only_one)
    return constraint(sequence(*before, text) if limited and before else text)


def _calls(calls: CallFormat, tools: Sequence[Tool], *, only_one: bool) -> Format:
    return tags(calls.syntax.tags(with_followed_schemas(tools), only_one=only_one), calls.syntax.separator, only_one=only_one)
