"""Texts and messages for tools, calls and outputs, for chat templates that have no place for these."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from enum import Enum, auto
from typing import Any, TypeAlias

Message: TypeAlias = dict[str, Any]
CallText: TypeAlias = Callable[[Sequence[Mapping[str, Any]]], str]
"""Function that writes calls, mappings with `name` and `arguments`, in the output format of a model."""

_TOOLS = """You can call tools. Each of the following lines describes one of the tools as JSON:
{tools}

To call a tool, write the name of the tool and its arguments in this form:
{example}"""
# Key of user messages for outputs.
IS_OUTPUT = "is_output"
_EXAMPLE = {"name": "TOOL_NAME", "arguments": {"PARAMETER_NAME": "VALUE"}}


class QuestionNeed(Enum):
    """Need of a template for a user message."""

    NONE = auto()
    ANYWHERE = auto()
    FIRST = auto()


def with_question(messages: list[Message], need: QuestionNeed) -> list[Message]:
    """Return the messages, with an empty user message before the others where a template needs a user message."""
    roles = [message["role"] for message in messages if message["role"] != "system"]
    is_missing = roles[:1] != ["user"] if need is QuestionNeed.FIRST else "user" not in roles
    if need is QuestionNeed.NONE or not is_missing:
        return messages
    at = int(messages[:1] != [] and messages[0]["role"] == "system")
    return [*messages[:at], {"role": "user", "content": ""}, *messages[at:]]


def describe_tools(tools: Sequence[Mapping[str, Any]], call_text: CallText) -> str:
    """Describe tools and the format of their calls for a system message; empty without tools."""
    if not tools:
        return ""
    return _TOOLS.format(tools="\n".join(_json(tool) for tool in tools), example=call_text([_EXAMPLE]))


def output_content(content: str | list[Message]) -> str | list[Message]:
    """Return the content of a user message for the output of a call."""
    begin, end = "<tool_response>\n", "\n</tool_response>"
    if isinstance(content, str):
        return f"{begin}{content}{end}"
    return [{"type": "text", "text": begin}, *content, {"type": "text", "text": end}]


def output_message(output: Mapping[str, Any]) -> Message:
    """Return the user message for the output of a call."""
    return {"role": "user", "content": output_content(output["content"]), IS_OUTPUT: True}


def joined(messages: Sequence[Message], *, is_strict: bool) -> list[Message]:
    """Join the user messages of outputs with the next user message, with `is_strict` all messages of a role in a row.

    Some templates require alternating roles.
    """
    result: list[Message] = []
    for message in messages:
        last = result[-1] if result else {}
        if message["role"] == "user" and (last.get(IS_OUTPUT) or (is_strict and last.get("role") == "user")):
            result[-1] = {**message, "content": join(last["content"], message["content"])}
        elif is_strict and _is_answer(last) and _is_answer(message):
            result[-1] = {
                key: join(last.get(key) or "", message.get(key) or "") for key in {**last, **message} if key != "role"
            }
            result[-1]["role"] = "assistant"
        else:
            result.append(message)
    return [{key: value for key, value in message.items() if key != IS_OUTPUT} for message in result]


def _is_answer(message: Mapping[str, Any]) -> bool:
    return message.get("role") == "assistant" and not message.get("tool_calls")


def join(first: str | list[Message], second: str | list[Message]) -> str | list[Message]:
    """Join the contents of two messages."""
    if not first or not second:
        return first or second
    if isinstance(first, str) and isinstance(second, str):
        return f"{first}\n\n{second}"
    return [*content_parts(first), *content_parts(second)]


def content_parts(content: str | list[Message]) -> list[Message]:
    """Return a content as a list of parts."""
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def with_object_arguments(message: Message) -> Message:
    """Return a message with calls, arguments that are text in a parameter of their own."""
    calls = []
    for call in message["tool_calls"]:
        function = call["function"]
        if isinstance(function["arguments"], str):
            call = {**call, "function": {**function, "arguments": {"arguments": function["arguments"]}}}
        calls.append(call)
    return {**message, "tool_calls": calls}
