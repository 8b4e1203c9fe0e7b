"""Items of the API to harmony messages."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from openai_harmony import (
    Message,
    ReasoningEffort,
    Role,
    SystemContent,
    ToolDescription,
)

from responses_app.dialects.base import Turn, UnsupportedInput
from responses_app.dialects.content import (
    Item,
    called_names,
    in_call_order,
    kind,
    message_text,
    output_text,
    reasoning_text,
    tool_name,
    unsupported,
)
from responses_app.dialects.tools.selection import Tool, Toolset

EFFORTS = {
    None: ReasoningEffort.MEDIUM,
    "low": ReasoningEffort.LOW,
    "medium": ReasoningEffort.MEDIUM,
    "high": ReasoningEffort.HIGH,
}
_PHASES = {"commentary": "commentary", "final_answer": "final"}
_RULES = frozenset({"system", "developer"})


class Head(NamedTuple):
    """All of a message but its text."""

    role: Role
    name: str | None = None
    channel: str | None = None
    recipient: str | None = None
    content_type: str | None = None


class TextMessage(NamedTuple):
    """A message of one text."""

    head: Head
    text: str


class DeveloperMessage(NamedTuple):
    """Instructions of the developer, and functions that may be called."""

    instructions: str
    tools: Sequence[Tool] = ()


# The first message alone is the library's own.
HarmonyMessage: TypeAlias = Message | TextMessage | DeveloperMessage


@dataclass(frozen=True, slots=True)
class _ItemPosition:
    """Where an item stands: its path, whether its reasoning is still wanted, whether a call follows it in its turn."""

    path: str
    thinking: bool
    before_call: bool
    names: dict[str, str]


def messages(turn: Turn, tools: Toolset) -> list[HarmonyMessage]:
    """The conversation of a turn. Raises BadTurn.

    System and developer items at the head join the instructions in the one developer message; later ones stay where they
    stand, as developer messages (J11). Reasoning is kept behind the last final answer only, as the model was trained, unless all is wanted.
    """
    head = _head(turn.items)
    said: list[HarmonyMessage] = [_system(turn), *_developer(turn, head, tools)]
    for item, place in _places(turn, head):
        said.extend(_speak(item, place))
    return said


def _head(items: Sequence[Item]) -> int:
    """How many items at the start are rules."""
    return next((index for index, item in enumerate(items) if item.get("role") not in _RULES), len(items))


def _system(turn: Turn) -> Message:
    if turn.effort not in EFFORTS:
        raise UnsupportedInput(
            f"Unsupported value: {turn.effort!r} is not supported with this model. Supported values are: 'low', 'medium', and 'high'.",
            "reasoning.effort",
            "unsupported_value",
        )
    content = SystemContent.new().with_reasoning_effort(EFFORTS[turn.effort])
    return Message.from_role_and_content(Role.SYSTEM, content.with_conversation_start_date(turn.today.isoformat()))


def _developer(turn: Turn, head: int, tools: Toolset) -> list[DeveloperMessage]:
    rules = [turn.instructions or ""]
    rules += [message_text(item, f"input[{index}]") for index, item in enumerate(turn.items[:head])]
    rules.append(_response_format(turn.format))
    text = "\n\n".join(rule for rule in rules if rule)
    return [DeveloperMessage(text, tools.offered)] if text or tools.offered else []


def _response_format(form: Item) -> str:
    """The section in which gpt-oss was taught to look for the schema of its answer; empty for free text."""
    if form.get("type") != "json_schema":
        return ""
    about = f"// {form['description']}\n" if form.get("description") else ""
    schema = json.dumps(form.get("schema"), ensure_ascii=False, separators=(",", ":"))
    return f"# Response Formats\n\n## {form.get('name')}\n\n{about}{schema}"


def described(tool: Tool) -> ToolDescription:
    return ToolDescription.new(tool["name"], tool.get("description") or "", tool.get("parameters"))


def _places(turn: Turn, head: int) -> Iterator[tuple[Item, _ItemPosition]]:
    items, before_call = turn.items, _before_calls(turn.items)
    finals = (index for index, item in enumerate(items) if _is_final(item, before_call[index]))
    last_final = max(finals, default=-1)
    names = called_names(items)
    for index, item in in_call_order(items)[head:]:
        yield item, _ItemPosition(f"input[{index}]", turn.all_reasoning or index > last_final, before_call[index], names)


def _is_final(item: Item, before_call: bool) -> bool:
    return item.get("role") == "assistant" and _phase(item, before_call) == "final"


def _before_calls(items: Sequence[Item]) -> list[bool]:
    """For every item, whether the model went on to a call, so that a message without a phase was a preamble."""
    found, behind = [], ""
    for item in reversed(items):
        found.append(behind == "function_call")
        if kind(item) != "reasoning" and item.get("role") != "assistant":
            behind = kind(item)
    return found[::-1]


def _phase(item: Item, before_call: bool) -> str:
    return _PHASES.get(item.get("phase") or "", "commentary" if before_call else "final")


def _speak(item: Item, place: _ItemPosition) -> list[HarmonyMessage]:
    speak = _KINDS.get(kind(item))
    if speak is None:
        raise unsupported(item, place.path)
    return speak(item, place)


def _message(item: Item, place: _ItemPosition) -> list[HarmonyMessage]:
    text = message_text(item, place.path)
    role = item.get("role")
    if role == "assistant":
        return [TextMessage(Head(Role.ASSISTANT, channel=_phase(item, place.before_call)), text)] if text else []
    if role in _RULES:
        return [DeveloperMessage(text)]
    if role == "user":
        return [TextMessage(Head(Role.USER), text)]
    raise UnsupportedInput(f"Invalid value: {role!r}.", f"{place.path}.role", "invalid_value")


def _reasoning(item: Item, place: _ItemPosition) -> list[HarmonyMessage]:
    text = reasoning_text(item) if place.thinking else ""
    return [TextMessage(Head(Role.ASSISTANT, channel="analysis"), text)] if text else []


def _call(item: Item, place: _ItemPosition) -> list[HarmonyMessage]:
    if item.get("namespace"):
        raise UnsupportedInput("Namespaces are not supported with this model.", f"{place.path}.namespace", "invalid_value")
    head = Head(Role.ASSISTANT, None, "commentary", f"functions.{item['name']}", "<|constrain|>json")
    return [TextMessage(head, item.get("arguments") or "")]


def _output(item: Item, place: _ItemPosition) -> list[HarmonyMessage]:
    head = Head(Role.TOOL, f"functions.{tool_name(item, place.names)}", "commentary", "assistant")
    return [TextMessage(head, output_text(item, place.path))]


_KINDS: dict[str, Callable[[Item, _ItemPosition], list[HarmonyMessage]]] = {
    "message": _message,
    "reasoning": _reasoning,
    "function_call": _call,
    "function_call_output": _output,
}
