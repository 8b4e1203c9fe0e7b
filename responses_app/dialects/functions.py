"""Every kind of tool as a plain function, for models that know nothing else; calls come back as what they were (F7, F8).

A custom tool is a function of one text, which is unwrapped while it is generated; one of a namespace is a function with both names in one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from responses_app.dialects.base import Listener, Turn
from responses_app.engines.border import Chunk
from responses_app.grammar.pieces import Arguments, Break, Call, Piece

KEY = "input"
_SCHEMA: Mapping[str, Any] = {"type": "object", "properties": {KEY: {"type": "string"}}, "required": [KEY], "additionalProperties": False}
_TYPES = {"custom_tool_call": "function_call", "custom_tool_call_output": "function_call_output"}
_HEAD = re.compile(r'\s*\{\s*"input"\s*:\s*"')
# As much of a head as there is: each step may be where the text ends so far.
_HEAD_SO_FAR = re.compile(r'\s*(?:\{\s*(?:"(?:i(?:n(?:p(?:u(?:t(?:"\s*(?::\s*)?)?)?)?)?)?)?)?)?')
# Characters and whole escapes of a JSON string; both halves of a surrogate pair together.
_WHOLE = re.compile(
    r'(?:[^"\\]|\\["\\/bfnrt]|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u(?![dD][89a-fA-F])[0-9a-fA-F]{4})*'
)
_ESCAPE_SO_FAR = re.compile(r"\\(?:u(?:[0-9a-fA-F]{0,3}|[dD][89abAB][0-9a-fA-F]{2}(?:\\(?:u(?:[dD](?:[c-fC-F][0-9a-fA-F]?)?)?)?)?)?)?")
_BROKEN = re.compile(r"\\(?:u[0-9a-fA-F]{4}|.)", re.DOTALL)




@dataclass(frozen=True, slots=True)
class Origin:
    """What a function that a model was told is in truth."""

    name: str
    kind: Literal["function", "custom"] = "function"
    namespace: str | None = None


Origins: TypeAlias = Mapping[str, Origin]
Json: TypeAlias = Mapping[str, Any]


def plain(turn: Turn) -> tuple[Turn, Origins]:
    """The same turn in functions, and what those are that are no functions; `turn` itself if all are."""
    told = {_told(tool["name"], space): (tool, space) for tool, space in _each([*turn.tools, *_added(turn)])}
    origins = {name: Origin(tool["name"], tool["type"], space) for name, (tool, space) in told.items()}
    strange = {name: one for name, one in origins.items() if one.kind == "custom" or one.namespace}
    if not strange and not any(map(_strange, turn.items)) and len(told) == len(turn.tools):
        return turn, {}
    items = [_item(item) for item in turn.items if item.get("type") != "additional_tools"]
    tools = [_function(name, tool) for name, (tool, _) in told.items()]
    return replace(turn, items=items, tools=tools, tool_choice=_choice(turn.tool_choice)), strange


def heard(listener: Listener, origins: Origins) -> Listener:
    """A listener whose calls are those of the tools that were declared; `listener` itself if all are functions."""
    return Unwrapping(listener, origins) if origins else listener


def _each(tools: Sequence[Json]) -> Iterator[tuple[Json, str | None]]:
    for tool in tools:
        if tool["type"] == "namespace":
            yield from ((one, tool["name"]) for one in tool["tools"])
        elif tool["type"] in ("function", "custom"):
            yield tool, None


def _added(turn: Turn) -> list[Json]:
    """Tools that came with items of the conversation."""
    return [tool for item in turn.items if item.get("type") == "additional_tools" for tool in item["tools"]]


def _told(name: str, namespace: str | None) -> str:
    return f"{namespace}__{name}" if namespace else name


def _strange(item: Json) -> bool:
    return item.get("type") in (*_TYPES, "additional_tools") or bool(item.get("namespace"))


def _item(item: Json) -> Json:
    kind, space = str(item.get("type")), item.get("namespace")
    told = {key: value for key, value in item.items() if key not in (KEY, "namespace")}
    if item.get("name"):
        told["name"] = _told(item["name"], space)
    if kind in _TYPES:
        told["type"] = _TYPES[kind]
    if kind == "custom_tool_call":
        told["arguments"] = json.dumps({KEY: item[KEY]}, ensure_ascii=False)
    return told


def _function(name: str, tool: Json) -> Json:
    if tool["type"] == "function":
        return {**tool, "name": name}
    said = {"name": name, "description": tool.get("description")}
    return {"type": "function", **said, "parameters": _SCHEMA, "strict": True}


def _choice(choice: str | Json) -> str | Json:
    if isinstance(choice, str):
        return choice
    if choice.get("type") == "custom":
        return {**choice, "type": "function"}
    if choice.get("type") == "allowed_tools":
        tools: Sequence[Json] = choice.get("tools") or ()
        return {**choice, "tools": [_choice(one) for one in tools]}
    return choice


class Unwrapping:
    """Hears what another listener hears."""

    def __init__(self, inner: Listener, origins: Origins) -> None:
        self._inner, self._origins = inner, origins
        self._text: _Text | None = None

    @property
    def reasoning_tokens(self) -> int:
        return self._inner.reasoning_tokens

    @property
    def done(self) -> bool:
        return self._inner.done

    def hear(self, chunk: Chunk) -> list[Piece]:
        return [piece for heard in self._inner.hear(chunk) for piece in self._back(heard)]

    def close(self) -> list[Piece]:
        return [piece for heard in self._inner.close() for piece in self._back(heard)]

    def _back(self, piece: Piece) -> list[Piece]:
        if isinstance(piece, Call):
            origin = self._origins.get(piece.name)
            self._text = _Text() if origin and origin.kind == "custom" else None
            return [Call(origin.name, origin.kind, origin.namespace) if origin else piece]
        if self._text is None:
            return [piece]
        if isinstance(piece, Arguments):
            return _said(self._text.read(piece.text))
        ending, self._text = self._text, None
        # Only what was no wrapping after all is left then.
        return [*(_said(ending.rest()) if isinstance(piece, Break) else []), piece]


def _said(text: str) -> list[Piece]:
    return [Arguments(text)] if text else []


class _Text:
    """The text inside `{"input": "..."}` as it comes; what is wrapped in any other way is the text itself."""

    def __init__(self) -> None:
        self._held = ""
        self._inside = self._over = self._raw = False

    def read(self, more: str) -> str:
        """What is certain by now."""
        if self._raw:
            return more
        self._held += more
        if not self._inside and not self._open():
            return self.rest() if self._raw else ""
        return self._inner()

    def rest(self) -> str:
        """What was held back, when no more will come."""
        text, self._held = "" if self._inside else self._held, ""
        return text

    def _open(self) -> bool:
        head = _HEAD.match(self._held)
        if head is not None:
            self._held, self._inside = self._held[head.end() :], True
            return True
        self._raw = _HEAD_SO_FAR.fullmatch(self._held) is None
        return False

    def _inner(self) -> str:
        said = []
        while self._held and not self._over:
            whole = _WHOLE.match(self._held)
            assert whole is not None  # noqa: S101 - it matches the empty text
            said.append(json.loads(f'"{whole[0]}"', strict=False))
            self._held = self._held[whole.end() :]
            if self._held.startswith('"'):
                self._over = True
            elif self._held and _ESCAPE_SO_FAR.fullmatch(self._held):
                break
            elif self._held:
                said.append(self._mend())
        return "".join(said)

    def _mend(self) -> str:
        """An escape that means nothing: half a pair is no character, anything else is what it says."""
        broken = _BROKEN.match(self._held)
        assert broken is not None  # noqa: S101 - it begins with a backslash
        self._held = self._held[broken.end() :]
        return "\ufffd" if len(broken[0]) > 2 else broken[0]
