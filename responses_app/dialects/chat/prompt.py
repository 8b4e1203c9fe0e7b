"""Items of the API to the messages of a chat template."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from enum import Enum, auto
from typing import Any, TypeAlias, cast

from responses_app.dialects.base import Turn, UnsupportedInput
from responses_app.dialects.content import (
    IMAGE,
    Item,
    called_names,
    has_images,
    in_call_order,
    kind,
    message_text,
    part_text,
    reasoning_text,
    text_of,
    tool_name,
    unsupported,
)
from responses_app.dialects.tools.selection import Tool

Message: TypeAlias = dict[str, Any]
ImagePlaceholder: TypeAlias = Callable[[int], str]
"""The placeholder of an image of a prompt, by its number; the first is 1."""
_RULES = frozenset({"system", "developer"})
# What an assistant message may hold, in the order in which templates write it, and how two of a kind are joined.
_ORDER = ("reasoning_content", "content", "tool_calls")
_JOIN: dict[str, Callable[[Any, Any], Any]] = {
    "reasoning_content": lambda before, more: f"{before}\n{more}",
    "content": lambda before, more: f"{before}\n\n{more}",
    "tool_calls": lambda before, more: [*before, *more],
}


class SystemMessagePlacement(Enum):
    """Where a template lets a system message stand (J11)."""

    ANYWHERE = auto()
    FIRST = auto()
    NOWHERE = auto()


def messages(
    turn: Turn,
    rules: SystemMessagePlacement,
    guard: Callable[[str], str],
    *,
    supports_images: bool = False,
    spell: ImagePlaceholder | None = None,
) -> list[Message]:
    """The conversation of a turn. Raises BadTurn, also for an image unless the model `supports_images`.

    An image is a part by itself, or with `spell` its placeholder on a line of its own, for templates that take text only.

    Instructions and the system and developer items at the head are one system message; later ones stay where they stand if
    the template allows, else they join the first. `guard` is asked about every text that comes from outside.
    """
    said = _MessageBuilder(
        guard,
        called_names(turn.items),
        at_head=rules is not SystemMessagePlacement.ANYWHERE,
        supports_images=supports_images,
        spell=spell,
    )
    said.rules.append(guard(turn.instructions or ""))
    for index, item in in_call_order(turn.items):
        said.add(item, f"input[{index}]")
    return _lead(said, rules)


def function(tool: Tool) -> Message:
    """A tool as templates and parsers know it, nested under `function`."""
    keys = ("name", "description", "parameters")
    return {"type": "function", "function": {key: tool[key] for key in keys if tool.get(key) is not None}}


def guarded(value: Any, guard: Callable[[str], str]) -> Any:
    """The same JSON with every text in it guarded; behind its escapes a special token could hide."""
    if isinstance(value, str):
        return guard(value)
    if isinstance(value, dict):
        return {guard(key): guarded(each, guard) for key, each in value.items()}
    return [guarded(each, guard) for each in value] if isinstance(value, list) else value


def _lead(said: _MessageBuilder, rules: SystemMessagePlacement) -> list[Message]:
    text = "\n\n".join(rule for rule in said.rules if rule)
    if not text:
        return said.messages
    first = said.messages[0] if said.messages else None
    if rules is not SystemMessagePlacement.NOWHERE:
        return [{"role": "system", "content": text}, *said.messages]
    if first is not None and first["role"] == "user":
        return [{**first, "content": _before(text, first["content"])}, *said.messages[1:]]
    return [{"role": "user", "content": text}, *said.messages]


def _before(text: str, content: str | list[Message]) -> str | list[Message]:
    return f"{text}\n\n{content}" if isinstance(content, str) else [{"type": "text", "text": f"{text}\n\n"}, *content]


class _MessageBuilder:
    """The messages so far; what one assistant said in a row is one message as long as its order can be written in one."""

    def __init__(
        self,
        guard: Callable[[str], str],
        names: Mapping[str, str],
        *,
        at_head: bool,
        supports_images: bool,
        spell: ImagePlaceholder | None,
    ) -> None:
        self.messages: list[Message] = []
        self.rules: list[str] = []
        self._guard = guard
        self._names = names
        self._at_head = at_head
        self._supports_images = supports_images
        self._spell = spell
        self._images = 0

    def add(self, item: Item, path: str) -> None:
        add = _KINDS.get(kind(item))
        if add is None:
            raise unsupported(item, path)
        add(self, item, path)

    def message(self, item: Item, path: str) -> None:
        role = item.get("role")
        if role == "user":
            self.messages.append({"role": role, "content": self._content(item.get("content"), f"{path}.content")})
            return
        text = self._guard(message_text(item, path))
        if role == "assistant":
            self._assistant("content", text)
        elif role in _RULES and (self._at_head or not self.messages):
            self.rules.append(text)
        elif role in _RULES:
            self.messages.append({"role": "system", "content": text})
        else:
            raise UnsupportedInput(f"Invalid value: {role!r}.", f"{path}.role", "invalid_value")

    def reasoning(self, item: Item, _path: str) -> None:
        self._assistant("reasoning_content", self._guard(reasoning_text(item)))

    def call(self, item: Item, path: str) -> None:
        if item.get("namespace"):
            raise UnsupportedInput("Namespaces are not supported with this model.", f"{path}.namespace", "invalid_value")
        names = guarded({"id": item.get("call_id"), "name": item["name"]}, self._guard)
        function = {"name": names["name"], "arguments": _arguments(item.get("arguments") or "{}", self._guard)}
        self._assistant("tool_calls", [{"id": names["id"], "type": "function", "function": function}])

    def output(self, item: Item, path: str) -> None:
        content, name = self._content(item.get("output"), f"{path}.output"), tool_name(item, self._names)
        call_id = guarded(item.get("call_id"), self._guard)
        self.messages.append({"role": "tool", "tool_call_id": call_id, "name": self._guard(name), "content": content})

    def _content(self, content: object, path: str) -> str | list[Message]:
        """The text, or if there are images the parts as templates know them; texts that stand together are one."""
        if not self._supports_images or not has_images(content):
            return self._guard(text_of(content, path))
        if self._spell is not None:
            return "\n".join(
                self._line(part, f"{path}[{index}]", self._spell) for index, part in enumerate(cast("list[Item]", content))
            )
        parts: list[Message] = []
        for index, part in enumerate(cast("list[Item]", content)):
            if part.get("type") == IMAGE:
                parts.append({"type": "image"})
                continue
            text = self._guard(part_text(part, f"{path}[{index}]"))
            if parts and parts[-1]["type"] == "text":
                text = f"{parts.pop()['text']}\n{text}"
            parts.append({"type": "text", "text": text})
        return parts

    def _line(self, part: Item, path: str, spell: ImagePlaceholder) -> str:
        if part.get("type") != IMAGE:
            return self._guard(part_text(part, path))
        self._images += 1
        return spell(self._images)

    def _assistant(self, key: str, value: Any) -> None:
        if not value:
            return
        if not self._may_join(key):
            self.messages.append({"role": "assistant", "content": ""})
        last = self.messages[-1]
        last[key] = _JOIN[key](last[key], value) if last.get(key) else value

    def _may_join(self, key: str) -> bool:
        if not self.messages or self.messages[-1]["role"] != "assistant":
            return False
        behind = _ORDER[_ORDER.index(key) + 1 :]
        return not any(self.messages[-1].get(each) for each in behind)


def _arguments(text: str, guard: Callable[[str], str]) -> object:
    """Arguments as an object where they are one, since templates write JSON themselves; else the text."""
    try:
        value = json.loads(text)
        return guarded(value, guard) if isinstance(value, dict) else guard(text)
    except (ValueError, RecursionError):
        return guard(text)


_KINDS: dict[str, Callable[[_MessageBuilder, Item, str], None]] = {
    "message": _MessageBuilder.message,
    "reasoning": _MessageBuilder.reasoning,
    "function_call": _MessageBuilder.call,
    "function_call_output": _MessageBuilder.output,
}
