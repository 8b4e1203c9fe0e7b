"""Leaf builders: plain strings and numbers in, one wire event of §2.2 out, not yet numbered.

Keys stand in a fixed order: `type` first (`numbered` puts `sequence_number` second), bulky payloads last, so that the bytes of
a `response`, an `item` or a `part` can be cut out of an encoded event.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

Event: TypeAlias = dict[str, Any]
"""One event in its wire form."""


class ArgumentStreamSpec(NamedTuple):
    """The one text of a call: its event names, the key of the whole text, and what an empty one is sent as."""

    delta: str
    done: str
    key: str
    blank: str


# An empty JSON document does not parse, so a call without arguments says `{}` (C2, rule C7); free text and code may be empty.
CHANNELS: Final = {
    "function_call": ArgumentStreamSpec(
        "response.function_call_arguments.delta", "response.function_call_arguments.done", "arguments", "{}"
    ),
    "mcp_call": ArgumentStreamSpec("response.mcp_call_arguments.delta", "response.mcp_call_arguments.done", "arguments", "{}"),
    "custom_tool_call": ArgumentStreamSpec(
        "response.custom_tool_call_input.delta", "response.custom_tool_call_input.done", "input", ""
    ),
    "code_interpreter_call": ArgumentStreamSpec(
        "response.code_interpreter_call_code.delta", "response.code_interpreter_call_code.done", "code", ""
    ),
}


def with_number(event: Event, number: int) -> Event:
    """The same event with its `sequence_number`, as second key."""
    return {"type": event["type"], "sequence_number": number, **event}


def lifecycle(stage: str, response: Mapping[str, Any]) -> Event:
    """`response.<stage>`: created, queued, in_progress, completed, incomplete or failed, with the whole Response."""
    return {"type": f"response.{stage}", "response": response}


def error(code: str | None, message: str, kind: str, param: str | None) -> Event:
    """The error told inside a stream: flat for the SDK's model, nested for live clients, both in one object (§2.6)."""
    return {
        "type": "error",
        "code": code,
        "message": message,
        "param": param,
        "error": {"type": kind, "code": code, "message": message, "param": param},
    }


def item_added(output_index: int, item: Mapping[str, Any]) -> Event:
    """An item opens, with its initial payload."""
    return {"type": "response.output_item.added", "output_index": output_index, "item": item}


def item_done(output_index: int, item: Mapping[str, Any]) -> Event:
    """An item closes, complete in itself."""
    return {"type": "response.output_item.done", "output_index": output_index, "item": item}


def part_added(item_id: str, output_index: int, content_index: int, part: Mapping[str, Any]) -> Event:
    """A content part opens, empty."""
    return {
        "type": "response.content_part.added",
        "item_id": item_id,
        "output_index": output_index,
        "content_index": content_index,
        "part": part,
    }


def part_done(item_id: str, output_index: int, content_index: int, part: Mapping[str, Any]) -> Event:
    """A content part closes, whole."""
    return {
        "type": "response.content_part.done",
        "item_id": item_id,
        "output_index": output_index,
        "content_index": content_index,
        "part": part,
    }


def text_delta(item_id: str, output_index: int, content_index: int, delta: str, logprobs: Sequence[Mapping[str, Any]]) -> Event:
    """More of an output text, with the log-probabilities of its tokens."""
    return {
        "type": "response.output_text.delta",
        "item_id": item_id,
        "output_index": output_index,
        "content_index": content_index,
        "delta": delta,
        "logprobs": list(logprobs),
    }


def text_done(item_id: str, output_index: int, content_index: int, text: str, logprobs: Sequence[Mapping[str, Any]]) -> Event:
    """The whole output text of a part; `logprobs` is the concatenation of what the deltas carried (rule C9)."""
    return {
        "type": "response.output_text.done",
        "item_id": item_id,
        "output_index": output_index,
        "content_index": content_index,
        "text": text,
        "logprobs": list(logprobs),
    }


def annotation_added(
    item_id: str, output_index: int, content_index: int, annotation_index: int, annotation: Mapping[str, Any]
) -> Event:
    """A citation of the open text part."""
    return {
        "type": "response.output_text.annotation.added",
        "item_id": item_id,
        "output_index": output_index,
        "content_index": content_index,
        "annotation_index": annotation_index,
        "annotation": annotation,
    }


def refusal_delta(item_id: str, output_index: int, content_index: int, delta: str) -> Event:
    """More of a refusal."""
    return {
        "type": "response.refusal.delta",
        "item_id": item_id,
        "output_index": output_index,
        "content_index": content_index,
        "delta": delta,
    }


def refusal_done(item_id: str, output_index: int, content_index: int, refusal: str) -> Event:
    """The whole refusal."""
    return {
        "type": "response.refusal.done",
        "item_id": item_id,
        "output_index": output_index,
        "content_index": content_index,
        "refusal": refusal,
    }


def reasoning_delta(item_id: str, output_index: int, content_index: int, delta: str) -> Event:
    """More raw reasoning; renamed at the edge for the openresponses profile (F5)."""
    return {
        "type": "response.reasoning_text.delta",
        "item_id": item_id,
        "output_index": output_index,
        "content_index": content_index,
        "delta": delta,
    }


def reasoning_done(item_id: str, output_index: int, content_index: int, text: str) -> Event:
    """The whole raw reasoning of a part."""
    return {
        "type": "response.reasoning_text.done",
        "item_id": item_id,
        "output_index": output_index,
        "content_index": content_index,
        "text": text,
    }


def summary_part_added(item_id: str, output_index: int, summary_index: int, part: Mapping[str, Any]) -> Event:
    """A summary part opens, empty."""
    return {
        "type": "response.reasoning_summary_part.added",
        "item_id": item_id,
        "output_index": output_index,
        "summary_index": summary_index,
        "part": part,
    }


def summary_part_done(item_id: str, output_index: int, summary_index: int, part: Mapping[str, Any]) -> Event:
    """A summary part closes, whole."""
    return {
        "type": "response.reasoning_summary_part.done",
        "item_id": item_id,
        "output_index": output_index,
        "summary_index": summary_index,
        "part": part,
    }


def summary_delta(item_id: str, output_index: int, summary_index: int, delta: str) -> Event:
    """More of a reasoning summary."""
    return {
        "type": "response.reasoning_summary_text.delta",
        "item_id": item_id,
        "output_index": output_index,
        "summary_index": summary_index,
        "delta": delta,
    }


def summary_done(item_id: str, output_index: int, summary_index: int, text: str) -> Event:
    """The whole text of a summary part."""
    return {
        "type": "response.reasoning_summary_text.done",
        "item_id": item_id,
        "output_index": output_index,
        "summary_index": summary_index,
        "text": text,
    }


def call_delta(kind: str, item_id: str, output_index: int, delta: str) -> Event:
    """More of what a call says; `kind` is an item type of CHANNELS."""
    return {"type": CHANNELS[kind].delta, "item_id": item_id, "output_index": output_index, "delta": delta}


def call_done(kind: str, item_id: str, output_index: int, whole: str) -> Event:
    """All that a call said; `kind` is an item type of CHANNELS."""
    channel = CHANNELS[kind]
    return {"type": channel.done, "item_id": item_id, "output_index": output_index, channel.key: whole}


def command_added(output_index: int, command_index: int) -> Event:
    """A command of a shell call opens, empty. These events have no `item_id` (§2.2, 21 to 23)."""
    return {
        "type": "response.shell_call_command.added",
        "output_index": output_index,
        "command_index": command_index,
        "command": "",
    }


def command_delta(output_index: int, command_index: int, delta: str) -> Event:
    """More of a command."""
    return {
        "type": "response.shell_call_command.delta",
        "output_index": output_index,
        "command_index": command_index,
        "delta": delta,
    }


def command_done(output_index: int, command_index: int, command: str) -> Event:
    """The whole command."""
    return {
        "type": "response.shell_call_command.done",
        "output_index": output_index,
        "command_index": command_index,
        "command": command,
    }


def progress(kind: str, stage: str, item_id: str, output_index: int) -> Event:
    """`response.<kind>.<stage>`: how far a tool that the server runs has come."""
    return {"type": f"response.{kind}.{stage}", "item_id": item_id, "output_index": output_index}
