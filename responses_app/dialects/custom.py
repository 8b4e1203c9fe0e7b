"""Custom tools for models that know functions only: a function with one text, whose text is unwrapped while it is generated (F7)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from responses_app.dialects.base import Listener, Turn
from responses_app.engines.border import Chunk
from responses_app.grammar.pieces import Arguments, Break, Call, Piece

KEY = "input"
_SCHEMA = {"type": "object", "properties": {KEY: {"type": "string"}}, "required": [KEY], "additionalProperties": False}
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


def names(turn: Turn) -> frozenset[str]:
    """The custom tools of a turn."""
    return frozenset(str(tool["name"]) for tool in turn.tools if tool.get("type") == "custom")


def plain(turn: Turn) -> Turn:
    """The same turn in functions, for a model to be told; `turn` itself if it has nothing custom."""
    if not names(turn) and not any(item.get("type") in _TYPES for item in turn.items):
        return turn
    return replace(
        turn,
        items=[_item(item) for item in turn.items],
        tools=[_function(tool) if tool.get("type") == "custom" else tool for tool in turn.tools],
        tool_choice=_choice(turn.tool_choice),
    )


def unwrapped(listener: Listener, custom: frozenset[str]) -> Listener:
    """A listener whose calls of these tools are custom again; `listener` itself if there are none."""
    return Unwrapping(listener, custom) if custom else listener


def _item(item: Mapping[str, Any]) -> Mapping[str, Any]:
    kind = item.get("type")
    if kind not in _TYPES:
        return item
    told = {key: value for key, value in item.items() if key != KEY} | {"type": _TYPES[kind]}
    return told | {"arguments": json.dumps({KEY: item[KEY]}, ensure_ascii=False)} if kind == "custom_tool_call" else told


def _function(tool: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "function",
        "name": tool["name"],
        "description": tool.get("description"),
        "parameters": _SCHEMA,
        "strict": True,
    }


def _choice(choice: str | Mapping[str, Any]) -> str | Mapping[str, Any]:
    if isinstance(choice, str):
        return choice
    if choice.get("type") == "custom":
        return {**choice, "type": "function"}
    if choice.get("type") == "allowed_tools":
        tools: Sequence[Mapping[str, Any]] = choice.get("tools") or ()
        return {**choice, "tools": [dict(_choice(one)) for one in tools if isinstance(one, Mapping)]}
    return choice


class Unwrapping:
    """Hears what another listener hears."""

    def __init__(self, inner: Listener, custom: frozenset[str]) -> None:
        self._inner, self._custom = inner, custom
        self._text: _Text | None = None

    @property
    def reasoning_tokens(self) -> int:
        return self._inner.reasoning_tokens

    @property
    def done(self) -> bool:
        return self._inner.done

    def hear(self, chunk: Chunk) -> list[Piece]:
        return [piece for heard in self._inner.hear(chunk) for piece in self._custom_again(heard)]

    def close(self) -> list[Piece]:
        return [piece for heard in self._inner.close() for piece in self._custom_again(heard)]

    def _custom_again(self, piece: Piece) -> list[Piece]:
        if isinstance(piece, Call):
            self._text = _Text() if piece.name in self._custom else None
            return [replace(piece, kind="custom") if self._text else piece]
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
