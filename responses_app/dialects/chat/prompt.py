"""Conversion of items to the messages of a chat template."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from enum import Enum, auto
from typing import Any, TypeAlias, cast

from responses_app.dialects.base import Turn, UnsupportedInput
from responses_app.dialects.content import (
    IMAGE,
    Item,
    called_names,
    has_images,
    in_call_order,
    item_type,
    message_text,
    part_text,
    reasoning_text,
    text_of,
    tool_name,
    unsupported,
)
from responses_app.dialects.toolset import Tool

Message: TypeAlias = dict[str, Any]
ImagePlaceholder: TypeAlias = Callable[[int], str]
"""Function from the number of an image in the prompt, starting at 1, to its placeholder."""
_SYSTEM_ROLES = frozenset({"system", "developer"})
# Keys of an assistant message in template order, and functions to join two values of a key.
_ORDER = ("reasoning_content", "content", "tool_calls")
_JOIN: dict[str, Callable[[Any, Any], Any]] = {
    "reasoning_content": lambda before, more: f"{before}\n{more}",
    "content": lambda before, more: f"{before}\n\n{more}",
    "tool_calls": lambda before, more: [*before, *more],
}


class SystemMessagePlacement(Enum):
    """Positions where a template allows system messages."""

    ANYWHERE = auto()
    FIRST = auto()
    NOWHERE = auto()


def messages(
    turn: Turn,
    placement: SystemMessagePlacement,
    escape: Callable[[str], str],
    *,
    supports_images: bool = False,
    image_placeholder: ImagePlaceholder | None = None,
    tools_text: str = "",
) -> list[Message]:
    """Convert a turn to messages. Raises UnsupportedInput, also for images unless `supports_images`.

    An image becomes a content part, or with `image_placeholder` its placeholder on a separate line, for text-only templates.

    Instructions and the system and developer items at the start become one system message. Later ones stay in place if
    `placement` allows, else they join the first. `tools_text` is the end of the first. `escape` is applied to every text from
    outside.
    """
    builder = _MessageBuilder(
        escape,
        called_names(turn.items),
        at_head=placement is not SystemMessagePlacement.ANYWHERE,
        supports_images=supports_images,
        image_placeholder=image_placeholder,
    )
    builder.rules.append(escape(turn.instructions or ""))
    for index, item in _with_calls_at_outputs(in_call_order(turn.items)):
        builder.add(item, f"input[{index}]")
    builder.rules.append(tools_text)
    return _with_system_message(builder, placement)


def template_tool(tool: Tool) -> Message:
    """Convert a tool to the format of templates, nested under `function`."""
    keys = ("name", "description", "parameters")
    return {"type": "function", "function": {key: tool[key] for key in keys if tool.get(key) is not None}}


def escape_json(value: Any, escape: Callable[[str], str]) -> Any:
    """Apply `escape` to every string of a JSON value, keys included: JSON escapes could hide a special token."""
    if isinstance(value, str):
        return escape(value)
    if isinstance(value, dict):
        return {escape(key): escape_json(each, escape) for key, each in value.items()}
    return [escape_json(each, escape) for each in value] if isinstance(value, list) else value


def _with_calls_at_outputs(entries: Sequence[tuple[int, Item]]) -> list[tuple[int, Item]]:
    """Return the entries, each call directly before the outputs among which the output of the call is.

    Some templates drop an output that does not stand behind the message with the call, and some fail.
    """
    # Clients may use an id again: the number of the output belongs to that of the call.
    outputs, calls = Counter[str](), Counter[str]()
    begins: dict[tuple[str, int], int] = {}
    begin = 0
    for place, (_, item) in enumerate(entries):
        if item_type(item) != "function_call_output":
            begin = place + 1
            continue
        call_id = str(item.get("call_id"))
        begins[call_id, outputs[call_id]] = begin
        outputs[call_id] += 1
    if not begins:
        return list(entries)
    keys: list[tuple[int, bool]] = []
    for place, (_, item) in enumerate(entries):
        is_call = item_type(item) == "function_call"
        call_id = str(item.get("call_id"))
        keys.append((begins.get((call_id, calls[call_id]), place) if is_call else place, not is_call))
        calls[call_id] += is_call
    return [entries[place] for place in sorted(range(len(entries)), key=keys.__getitem__)]


def _with_system_message(builder: _MessageBuilder, placement: SystemMessagePlacement) -> list[Message]:
    text = "\n\n".join(rule for rule in builder.rules if rule)
    if not text:
        return builder.messages
    first = builder.messages[0] if builder.messages else None
    if placement is not SystemMessagePlacement.NOWHERE:
        return [{"role": "system", "content": text}, *builder.messages]
    if first is not None and first["role"] == "user":
        return [{**first, "content": _prepend(text, first["content"])}, *builder.messages[1:]]
    return [{"role": "user", "content": text}, *builder.messages]


def _prepend(text: str, content: str | list[Message]) -> str | list[Message]:
    return f"{text}\n\n{content}" if isinstance(content, str) else [{"type": "text", "text": f"{text}\n\n"}, *content]


class _MessageBuilder:
    """Builder of the message list. Adjacent assistant items share a message while in the order of `_ORDER`."""

    def __init__(
        self,
        escape: Callable[[str], str],
        names: Mapping[str, str],
        *,
        at_head: bool,
        supports_images: bool,
        image_placeholder: ImagePlaceholder | None,
    ) -> None:
        self.messages: list[Message] = []
        self.rules: list[str] = []
        self._escape = escape
        self._names = names
        self._at_head = at_head
        self._supports_images = supports_images
        self._image_placeholder = image_placeholder
        self._images = 0

    def add(self, item: Item, path: str) -> None:
        add = _HANDLERS.get(item_type(item))
        if add is None:
            raise unsupported(item, path)
        add(self, item, path)

    def message(self, item: Item, path: str) -> None:
        role = item.get("role")
        if role == "user":
            self.messages.append({"role": role, "content": self._content(item.get("content"), f"{path}.content")})
            return
        text = self._escape(message_text(item, path))
        if role == "assistant":
            self._assistant("content", text)
        elif role in _SYSTEM_ROLES and (self._at_head or not self.messages):
            self.rules.append(text)
        elif role in _SYSTEM_ROLES:
            self.messages.append({"role": "system", "content": text})
        else:
            raise UnsupportedInput(f"Invalid value: {role!r}.", f"{path}.role", "invalid_value")

    def reasoning(self, item: Item, _path: str) -> None:
        self._assistant("reasoning_content", self._escape(reasoning_text(item)))

    def call(self, item: Item, path: str) -> None:
        if item.get("namespace"):
            raise UnsupportedInput("Namespaces are not supported with this model.", f"{path}.namespace", "invalid_value")
        names = escape_json({"id": item.get("call_id"), "name": item["name"]}, self._escape)
        function = {"name": names["name"], "arguments": _arguments(item.get("arguments") or "{}", self._escape)}
        self._assistant("tool_calls", [{"id": names["id"], "type": "function", "function": function}])

    def output(self, item: Item, path: str) -> None:
        content, name = self._content(item.get("output"), f"{path}.output"), tool_name(item, self._names)
        call_id = escape_json(item.get("call_id"), self._escape)
        self.messages.append({"role": "tool", "tool_call_id": call_id, "name": self._escape(name), "content": content})

    def _content(self, content: object, path: str) -> str | list[Message]:
        """Return the text, or with images the content parts of templates; adjacent texts are joined."""
        if not self._supports_images or not has_images(content):
            return self._escape(text_of(content, path))
        if self._image_placeholder is not None:
            return "\n".join(
                self._line(part, f"{path}[{index}]", self._image_placeholder)
                for index, part in enumerate(cast("list[Item]", content))
            )
        parts: list[Message] = []
        for index, part in enumerate(cast("list[Item]", content)):
            if part.get("type") == IMAGE:
                parts.append({"type": "image"})
                continue
            text = self._escape(part_text(part, f"{path}[{index}]"))
            if parts and parts[-1]["type"] == "text":
                text = f"{parts.pop()['text']}\n{text}"
            parts.append({"type": "text", "text": text})
        return parts

    def _line(self, part: Item, path: str, image_placeholder: ImagePlaceholder) -> str:
        if part.get("type") != IMAGE:
            return self._escape(part_text(part, path))
        self._images += 1
        return image_placeholder(self._images)

    def _assistant(self, key: str, value: Any) -> None:
        if not value:
            return
        if not self._can_join(key):
            self.messages.append({"role": "assistant", "content": ""})
        last = self.messages[-1]
        last[key] = _JOIN[key](last[key], value) if last.get(key) else value

    def _can_join(self, key: str) -> bool:
        if not self.messages or self.messages[-1]["role"] != "assistant":
            return False
        later_keys = _ORDER[_ORDER.index(key) + 1 :]
        return not any(self.messages[-1].get(each) for each in later_keys)


def _arguments(text: str, escape: Callable[[str], str]) -> object:
    """Parse arguments if a JSON object, because templates write JSON themselves; else return the text."""
    try:
        value = json.loads(text)
        return escape_json(value, escape) if isinstance(value, dict) else escape(text)
    except (ValueError, RecursionError):
        return escape(text)


_HANDLERS: dict[str, Callable[[_MessageBuilder, Item, str], None]] = {
    "message": _MessageBuilder.message,
    "reasoning": _MessageBuilder.reasoning,
    "function_call": _MessageBuilder.call,
    "function_call_output": _MessageBuilder.output,
}
