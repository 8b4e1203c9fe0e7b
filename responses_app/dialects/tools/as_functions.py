"""Every kind of tool as a plain function, for models that know nothing else; calls come back as what they were (F7, F8).

A custom tool is a function of one text, which is unwrapped while it is generated; one of a namespace is a function with both names in one,
but for the namespace `functions`, which says no more than what they are; a tool that the protocol names (shell, patch, search) is a
function of that name, whose call is heard whole. A tool that says `defer_loading` is not told: a search has to find it first. What tools of
another server did is told as calls of functions.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from responses_app.dialects.base import OutputParser, Turn
from responses_app.dialects.constraints import grammar as constraints_grammar
from responses_app.dialects.parser_filter import ParserFilter
from responses_app.dialects.tools import client, hosted_history
from responses_app.dialects.tools.client import CLIENT_TOOLS
from responses_app.dialects.tools.custom_input import InputUnwrapper
from responses_app.protocol.deltas import Arguments, Call, ClientCall, Delta, EndItem

KEY = "input"
# Codex puts its tools there, and harmony puts all tools into a namespace of that name by itself.
BARE = "functions"
_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {KEY: {"type": "string"}},
    "required": [KEY],
    "additionalProperties": False,
}
_TYPES = {"custom_tool_call": "function_call", "custom_tool_call_output": "function_call_output"}
# Tools of any other type are none that a model is told.
_TOLD = frozenset({"function", "custom", *CLIENT_TOOLS})
_ADDING = ("additional_tools", "tool_search_output")
_STRANGE = frozenset({*_TYPES, "additional_tools", *client.CALLS, *client.OUTPUTS, *hosted_history.TYPES})


@dataclass(frozen=True, slots=True)
class ToolOrigin:
    """What a function that a model was told is in truth."""

    name: str
    kind: str = "function"
    namespace: str | None = None
    async_: bool = False


Origins: TypeAlias = Mapping[str, ToolOrigin]
Json: TypeAlias = Mapping[str, Any]
Ebnf: TypeAlias = Callable[[Json], str | None]


def named(name: str, namespace: str | None) -> str:
    """The name by which a model is told a tool."""
    return f"{namespace}__{name}" if namespace and namespace != BARE else name


def to_functions(turn: Turn, ebnf: Ebnf = constraints_grammar.ebnf) -> tuple[Turn, Origins]:
    """The same turn in functions, and what those are that are no functions; `turn` itself if all are.

    `ebnf` looks up the grammar of a format, where it was converted elsewhere.
    """
    told = {named(_name(tool), space): (tool, space) for tool, space in [*_each(turn.tools), *_each(_added(turn), found=True)]}
    origins = {
        name: ToolOrigin(_name(tool), tool["type"], space, bool(tool.get("async"))) for name, (tool, space) in told.items()
    }
    strange = {name: one for name, one in origins.items() if one.kind != "function" or one.namespace or one.async_}
    if not strange and not any(map(_strange, turn.items)) and len(told) == len(turn.tools):
        return turn, {}
    items = [_item(item) for item in hosted_history.as_calls(turn.items) if item.get("type") != "additional_tools"]
    tools = [_function(name, tool, ebnf) for name, (tool, _) in told.items()]
    return replace(turn, items=items, tools=tools, tool_choice=_choice(turn.tool_choice)), strange


def formats(turn: Turn) -> list[Json]:
    """The formats of all custom tools that the model is told."""
    tools = [tool for tool, _ in [*_each(turn.tools), *_each(_added(turn), found=True)]]
    return [tool["format"] for tool in tools if tool["type"] == "custom" and tool.get("format")]


def map_tool_calls(parser: OutputParser, origins: Origins) -> OutputParser:
    """Map function calls back to the declared tools. Return `parser` unchanged if every tool is a plain function."""
    return ToolCallMapper(parser, origins) if origins else parser


def _each(tools: Sequence[Json], *, found: bool = False) -> Iterator[tuple[Json, str | None]]:
    """The tools that a model is told, with their namespace; one that waits for a search once it was found."""
    for tool in tools:
        if tool["type"] == "namespace":
            yield from ((one, tool["name"]) for one in tool["tools"] if found or not one.get("defer_loading"))
        elif tool["type"] in _TOLD and (found or not tool.get("defer_loading")):
            yield tool, None


def _name(tool: Json) -> str:
    return str(tool.get("name") or tool["type"])


def _added(turn: Turn) -> list[Json]:
    """Tools that came with items of the conversation, or were found by a search."""
    return [tool for item in turn.items if item.get("type") in _ADDING for tool in item["tools"]]


def _strange(item: Json) -> bool:
    return item.get("type") in _STRANGE or bool(item.get("namespace"))


def _item(item: Json) -> Json:
    kind, space = str(item.get("type")), item.get("namespace")
    if kind in client.CALLS:
        return client.call(item)
    if kind in client.OUTPUTS:
        return client.output(item)
    told = {key: value for key, value in item.items() if key not in (KEY, "namespace")}
    if item.get("name"):
        told["name"] = named(item["name"], space)
    if kind in _TYPES:
        told["type"] = _TYPES[kind]
    if kind == "custom_tool_call":
        told["arguments"] = json.dumps({KEY: item[KEY]}, ensure_ascii=False)
    return told


def _function(name: str, tool: Json, ebnf: Ebnf) -> Json:
    if tool["type"] == "function":
        return {**tool, "name": name}
    if tool["type"] in CLIENT_TOOLS:
        return client.function(tool)
    form = tool.get("format") or {}
    grammar = ebnf(form)
    said = {"name": name, "description": _described(tool.get("description"), form) if grammar else tool.get("description")}
    return {"type": "function", **said, "parameters": _SCHEMA, "strict": True, "grammar": grammar}


def _described(description: str | None, form: Json) -> str:
    kind = "Lark grammar" if form["syntax"] == "lark" else "regular expression"
    return f"{description or ''}\n\nThe input must match this {kind}:\n{form['definition']}".strip()


def _choice(choice: str | Json) -> str | Json:
    if isinstance(choice, str):
        return choice
    if choice.get("type") == "custom":
        return {**choice, "type": "function"}
    if choice.get("type") in CLIENT_TOOLS:
        return {"type": "function", "name": choice["type"]}
    if choice.get("type") == "allowed_tools":
        tools: Sequence[Json] = choice.get("tools") or ()
        return {**choice, "tools": [_choice(one) for one in tools if one.get("type") in _TOLD]}
    return choice


class ToolCallMapper(ParserFilter):
    """Parser that maps function calls back to the declared tools."""

    def __init__(self, parser: OutputParser, origins: Origins) -> None:
        super().__init__(parser)
        self._origins = origins
        self._text: InputUnwrapper | None = None
        self._whole: _BufferedCall | None = None

    def _filter(self, deltas: list[Delta]) -> list[Delta]:
        return [mapped for delta in deltas for mapped in self._map(delta)]

    def _map(self, piece: Delta) -> list[Delta]:
        if self._whole is not None and isinstance(piece, Arguments):
            return self._whole.feed(piece)
        if isinstance(piece, Call):
            return [*self._flush(), *self._called(piece)]
        if self._whole is not None:
            return [*self._flush(), piece]
        if self._text is None:
            return [piece]
        if isinstance(piece, Arguments):
            return _said(self._text.read(piece.text))
        ending, self._text = self._text, None
        # Only what was no wrapping after all is left then.
        return [*(_said(ending.flush()) if isinstance(piece, EndItem) else []), piece]

    def _called(self, piece: Call) -> list[Delta]:
        origin, self._text = self._origins.get(piece.name), None
        if origin is None:
            return [piece]
        if origin.kind in CLIENT_TOOLS:
            self._whole = _BufferedCall(origin.kind)
            return []
        if origin.kind != "custom":
            return [Call(origin.name, "function", origin.namespace, origin.async_)]
        self._text = InputUnwrapper()
        return [Call(origin.name, "custom", origin.namespace, origin.async_)]

    def _flush(self) -> list[Delta]:
        """The call that was held back until it was whole."""
        whole, self._whole = self._whole, None
        return whole.end() if whole is not None else []


class _BufferedCall:
    """A call that makes an item only when all of it is known."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._said: list[str] = []

    def feed(self, piece: Arguments) -> list[Delta]:
        self._said.append(piece.text)
        return []

    def end(self) -> list[Delta]:
        said = "".join(self._said)
        body = client.body(self._name, said)
        if body is None:
            return [Call(self._name), *_said(said)]
        return [ClientCall(CLIENT_TOOLS[self._name].kind, body)]


def _said(text: str) -> list[Delta]:
    return [Arguments(text)] if text else []
