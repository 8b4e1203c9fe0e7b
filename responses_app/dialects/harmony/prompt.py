"""Conversion of items to harmony messages."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from openai_harmony import (
    ReasoningEffort,
    Role,
    ToolDescription,
)

from responses_app.dialects.base import Turn, UnsupportedInput
from responses_app.dialects.content import (
    Item,
    called_names,
    in_call_order,
    item_type,
    message_text,
    output_text,
    reasoning_text,
    tool_name,
    unsupported,
)
from responses_app.dialects.harmony.own_tools import call_text, functions_of, own_tools
from responses_app.dialects.toolset import RECIPIENT, Tool, Toolset

EFFORTS = {
    None: ReasoningEffort.MEDIUM,
    "low": ReasoningEffort.LOW,
    "medium": ReasoningEffort.MEDIUM,
    "high": ReasoningEffort.HIGH,
}
_PHASES = {"commentary": "commentary", "final_answer": "final"}
_SYSTEM_ROLES = frozenset({"system", "developer"})
# Keywords of a schema that describes no parameters.
_EMPTY_OBJECT_KEYS = frozenset({"$schema", "type", "properties", "required", "additionalProperties", "title", "description"})


class Head(NamedTuple):
    """All parts of a message except the text."""

    role: Role
    name: str | None = None
    channel: str | None = None
    recipient: str | None = None
    content_type: str | None = None


class SystemMessage(NamedTuple):
    """First message: reasoning effort, date in ISO form, and the names of gpt-oss's own tools that are offered."""

    effort: ReasoningEffort
    today: str
    own_tools: tuple[str, ...]


class TextMessage(NamedTuple):
    """Message with a single text."""

    head: Head
    text: str


class DeveloperMessage(NamedTuple):
    """Developer instructions, and available functions."""

    instructions: str
    tools: Sequence[Tool] = ()


HarmonyMessage: TypeAlias = SystemMessage | TextMessage | DeveloperMessage


@dataclass(frozen=True, slots=True)
class _ItemPosition:
    """Position of an item: path, whether to render reasoning, whether a call follows in the same turn."""

    path: str
    with_reasoning: bool
    before_call: bool
    names: dict[str, str]


def messages(turn: Turn, tools: Toolset) -> list[HarmonyMessage]:
    """Convert a turn to messages. Raises UnsupportedInput.

    System and developer items at the start join the instructions in one developer message; later ones stay in place as
    developer messages. Reasoning is rendered only after the last final answer, as in training, unless `all_reasoning` is set.
    """
    head = _head(turn.items)
    rendered: list[HarmonyMessage] = [_system(turn, tools), *_developer(turn, head, tools)]
    for item, position in _positions(turn, head):
        rendered.extend(_convert(item, position))
    return rendered


def _head(items: Sequence[Item]) -> int:
    """Count the system and developer items at the start."""
    return next((index for index, item in enumerate(items) if item.get("role") not in _SYSTEM_ROLES), len(items))


def _system(turn: Turn, tools: Toolset) -> SystemMessage:
    if turn.effort not in EFFORTS:
        raise UnsupportedInput(
            f"Unsupported value: {turn.effort!r} is not supported with this model. Supported values are: 'low', 'medium', and 'high'.",
            "reasoning.effort",
            "unsupported_value",
        )
    return SystemMessage(EFFORTS[turn.effort], turn.today.isoformat(), own_tools(tools.offered))


def _developer(turn: Turn, head: int, tools: Toolset) -> list[DeveloperMessage]:
    rules = [turn.instructions or ""]
    rules += [message_text(item, f"input[{index}]") for index, item in enumerate(turn.items[:head])]
    rules.append(_response_format(turn.format))
    text = "\n\n".join(rule for rule in rules if rule)
    functions = functions_of(tools)
    return [DeveloperMessage(text, functions)] if text or functions else []


def _response_format(form: Item) -> str:
    """Return the section for the output schema that gpt-oss was trained with; empty for free text."""
    if form.get("type") != "json_schema":
        return ""
    about = f"// {form['description']}\n" if form.get("description") else ""
    schema = json.dumps(form.get("schema"), ensure_ascii=False, separators=(",", ":"))
    return f"# Response Formats\n\n## {form.get('name')}\n\n{about}{schema}"


def tool_description(tool: Tool) -> ToolDescription:
    """Convert a tool for the harmony library. Without parameters the library writes `() => any`, as gpt-oss's chat template does."""
    schema = tool.get("parameters")
    has_parameters = (
        not isinstance(schema, Mapping) or bool(schema.get("properties")) or not schema.keys() <= _EMPTY_OBJECT_KEYS
    )
    return ToolDescription.new(tool["name"], tool.get("description") or "", schema if has_parameters else None)


def _positions(turn: Turn, head: int) -> Iterator[tuple[Item, _ItemPosition]]:
    items, before_call = turn.items, _before_calls(turn.items)
    finals = (index for index, item in enumerate(items) if _is_final(item, before_call[index]))
    last_final = max(finals, default=-1)
    names = called_names(items)
    for index, item in in_call_order(items)[head:]:
        yield item, _ItemPosition(f"input[{index}]", turn.all_reasoning or index > last_final, before_call[index], names)


def _is_final(item: Item, before_call: bool) -> bool:
    return item.get("role") == "assistant" and _phase(item, before_call) == "final"


def _before_calls(items: Sequence[Item]) -> list[bool]:
    """For each item, whether the model continued with a call; a message without a phase is then a preamble."""
    before_call, next_type = [], ""
    for item in reversed(items):
        before_call.append(next_type == "function_call")
        if item_type(item) != "reasoning" and item.get("role") != "assistant":
            next_type = item_type(item)
    return before_call[::-1]


def _phase(item: Item, before_call: bool) -> str:
    return _PHASES.get(item.get("phase") or "", "commentary" if before_call else "final")


def _convert(item: Item, position: _ItemPosition) -> list[HarmonyMessage]:
    handler = _HANDLERS.get(item_type(item))
    if handler is None:
        raise unsupported(item, position.path)
    return handler(item, position)


def _message(item: Item, position: _ItemPosition) -> list[HarmonyMessage]:
    text = message_text(item, position.path)
    role = item.get("role")
    if role == "assistant":
        return [TextMessage(Head(Role.ASSISTANT, channel=_phase(item, position.before_call)), text)] if text else []
    if role in _SYSTEM_ROLES:
        return [DeveloperMessage(text)]
    if role == "user":
        return [TextMessage(Head(Role.USER), text)]
    raise UnsupportedInput(f"Invalid value: {role!r}.", f"{position.path}.role", "invalid_value")


def _reasoning(item: Item, position: _ItemPosition) -> list[HarmonyMessage]:
    text = reasoning_text(item) if position.with_reasoning else ""
    return [TextMessage(Head(Role.ASSISTANT, channel="analysis"), text)] if text else []


def _call(item: Item, position: _ItemPosition) -> list[HarmonyMessage]:
    if item.get("namespace"):
        raise UnsupportedInput("Namespaces are not supported with this model.", f"{position.path}.namespace", "invalid_value")
    if item.get(RECIPIENT):
        return [_own_call(item, item[RECIPIENT])]
    head = Head(Role.ASSISTANT, None, "commentary", f"functions.{item['name']}", "<|constrain|>json")
    return [TextMessage(head, item.get("arguments") or "")]


def _own_call(item: Item, recipient: str) -> TextMessage:
    """Convert a call of gpt-oss's own tool `recipient`."""
    return TextMessage(Head(Role.ASSISTANT, None, "analysis", recipient, "code"), call_text(recipient, item["arguments"]))


def _output(item: Item, position: _ItemPosition) -> list[HarmonyMessage]:
    recipient = item.get(RECIPIENT)
    name, channel = (recipient, "analysis") if recipient else (f"functions.{tool_name(item, position.names)}", "commentary")
    return [TextMessage(Head(Role.TOOL, name, channel, "assistant"), output_text(item, position.path))]


_HANDLERS: dict[str, Callable[[Item, _ItemPosition], list[HarmonyMessage]]] = {
    "message": _message,
    "reasoning": _reasoning,
    "function_call": _call,
    "function_call_output": _output,
}
