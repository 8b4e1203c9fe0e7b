"""Presents every tool to models as a plain function, and maps function calls back to the declared tools.

A custom tool becomes a function with a single text argument, extracted while generated. A tool in a namespace gets a name
prefixed by the namespace, except in the namespace `functions`. Client tools of the protocol (shell, patch, search) become
functions of the same name, whose calls are buffered until complete. Tools with `defer_loading` are offered only after a tool
search found them. Earlier calls of server tools are presented as function calls.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from responses_app.dialects.base import OutputParser, Turn
from responses_app.dialects.constraints import grammar as constraints_grammar
from responses_app.dialects.parser_filter import ParserFilter
from responses_app.dialects.toolset import recipients
from responses_app.protocol.deltas import Arguments, Call, ClientCall, Delta, EndItem, OutputProblem
from responses_app.tools.functions import client, server_history
from responses_app.tools.functions.client import CLIENT_TOOLS, is_hosted_search
from responses_app.tools.functions.custom_input import InputUnwrapper

INPUT_KEY = "input"
# Codex puts its tools into this namespace, and harmony adds this namespace to all tools by itself.
PLAIN_NAMESPACE = "functions"
_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {INPUT_KEY: {"type": "string"}},
    "required": [INPUT_KEY],
    "additionalProperties": False,
}
_TYPES = {"custom_tool_call": "function_call", "custom_tool_call_output": "function_call_output"}
# Types of tools presented to models.
_OFFERED_TYPES = frozenset({"function", "custom", *CLIENT_TOOLS})
_TOOL_ADDING_TYPES = ("additional_tools", "tool_search_output")
_NOT_PLAIN_TYPES = frozenset({*_TYPES, "additional_tools", *client.CALLS, *client.OUTPUTS, *server_history.TYPES})


@dataclass(frozen=True, slots=True)
class ToolOrigin:
    """Declared tool behind a function."""

    name: str
    kind: str = "function"
    namespace: str | None = None
    async_: bool = False


Origins: TypeAlias = Mapping[str, ToolOrigin]
Json: TypeAlias = Mapping[str, Any]
Ebnf: TypeAlias = Callable[[Json], str | None]


def function_name(name: str, namespace: str | None) -> str:
    """Return the function name of a tool."""
    return f"{namespace}__{name}" if namespace and namespace != PLAIN_NAMESPACE else name


def to_functions(turn: Turn, ebnf: Ebnf = constraints_grammar.ebnf) -> tuple[Turn, Origins]:
    """Convert all tools and calls of a turn to functions. Return also the declared tools behind functions that are not plain.

    If all are plain functions, `turn` itself is returned. `ebnf` looks up the EBNF of a grammar format converted elsewhere.
    """
    offered = {
        function_name(_name(tool), space): (tool, space)
        for tool, space in [*_offered(turn.tools), *_offered(_added(turn.items), has_tool_search=True)]
    }
    origins = {
        name: ToolOrigin(_name(tool), tool["type"], space, bool(tool.get("async"))) for name, (tool, space) in offered.items()
    }
    not_plain = {name: entry for name, entry in origins.items() if entry.kind != "function" or entry.namespace or entry.async_}
    if not not_plain and not any(map(_is_not_plain, turn.items)) and len(offered) == len(turn.tools):
        return turn, {}
    history = server_history.as_calls(turn.items, recipients(turn.tools))
    items = [_item(item) for item in history if item.get("type") != "additional_tools"]
    tools = [_function(name, tool, ebnf) for name, (tool, _) in offered.items()]
    return replace(turn, items=items, tools=tools, tool_choice=_choice(turn.tool_choice)), not_plain


def offered_names(turn: Turn) -> frozenset[str]:
    """Return the function names of all offered tools."""
    return frozenset(
        function_name(_name(tool), space)
        for tool, space in [*_offered(turn.tools), *_offered(_added(turn.items), has_tool_search=True)]
    )


def taken_name(names: Collection[str], functions: Sequence[Json]) -> str | None:
    """Return the first name of the client's tools `names` that a function of the server has, too; None without such a name."""
    return next((str(one["name"]) for one in functions if one["name"] in names), None)


def custom_tool_formats(tools: Sequence[Json], items: Sequence[Json]) -> list[Json]:
    """Return the formats of all offered custom tools: those of `tools`, and those that `items` add."""
    offered = [tool for tool, _ in [*_offered(tools), *_offered(_added(items), has_tool_search=True)]]
    return [tool["format"] for tool in offered if tool["type"] == "custom" and tool.get("format")]


def map_tool_calls(parser: OutputParser, origins: Origins) -> OutputParser:
    """Map function calls back to the declared tools. Return `parser` unchanged if every tool is a plain function."""
    return ToolCallMapper(parser, origins) if origins else parser


def _offered(tools: Sequence[Json], *, has_tool_search: bool = False) -> Iterator[tuple[Json, str | None]]:
    """Yield the offered tools with their namespaces; with `has_tool_search` or a hosted search also the deferred ones."""
    shows_deferred = has_tool_search or any(map(is_hosted_search, tools))
    for tool in tools:
        if tool["type"] == "namespace":
            yield from ((entry, tool["name"]) for entry in tool["tools"] if shows_deferred or not entry.get("defer_loading"))
        elif (
            tool["type"] in _OFFERED_TYPES and (shows_deferred or not tool.get("defer_loading")) and not is_hosted_search(tool)
        ):
            yield tool, None


def _name(tool: Json) -> str:
    return str(tool.get("name") or tool["type"])


def _added(items: Sequence[Json]) -> list[Json]:
    """Return the tools added by items of the conversation, or found by a tool search."""
    return [tool for item in items if item.get("type") in _TOOL_ADDING_TYPES for tool in item["tools"]]


def _is_not_plain(item: Json) -> bool:
    return item.get("type") in _NOT_PLAIN_TYPES or bool(item.get("namespace"))


def _item(item: Json) -> Json:
    kind, space = str(item.get("type")), item.get("namespace")
    if kind in client.CALLS:
        return client.call_as_function(item)
    if kind in client.OUTPUTS:
        return client.output_as_function(item)
    converted = {key: value for key, value in item.items() if key not in (INPUT_KEY, "namespace")}
    if item.get("name"):
        converted["name"] = function_name(item["name"], space)
    if kind in _TYPES:
        converted["type"] = _TYPES[kind]
    if kind == "custom_tool_call":
        converted["arguments"] = json.dumps({INPUT_KEY: item[INPUT_KEY]}, ensure_ascii=False)
    return converted


def _function(name: str, tool: Json, ebnf: Ebnf) -> Json:
    if tool["type"] == "function":
        return {**tool, "name": name}
    if tool["type"] in CLIENT_TOOLS:
        return client.as_function(tool)
    form = tool.get("format") or {}
    grammar = ebnf(form)
    named = {"name": name, "description": _description(tool.get("description"), form) if grammar else tool.get("description")}
    return {"type": "function", **named, "parameters": _SCHEMA, "strict": True, "grammar": grammar}


def _description(description: str | None, form: Json) -> str:
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
        return {**choice, "tools": [_choice(entry) for entry in tools if entry.get("type") in _OFFERED_TYPES]}
    return choice


class ToolCallMapper(ParserFilter):
    """Parser that maps function calls back to the declared tools."""

    def __init__(self, parser: OutputParser, origins: Origins) -> None:
        super().__init__(parser)
        self._origins = origins
        self._text: InputUnwrapper | None = None
        self._buffered: _BufferedCall | None = None

    def _passes(self, delta: Delta) -> bool:
        return delta.__class__ is not Call and self._text is None and self._buffered is None

    def _filter(self, deltas: list[Delta]) -> list[Delta]:
        return [mapped for delta in deltas for mapped in self._map(delta)]

    def _map(self, delta: Delta) -> list[Delta]:
        if self._buffered is not None and isinstance(delta, Arguments):
            return self._buffered.feed(delta)
        if isinstance(delta, OutputProblem):
            return self._map_problem(delta)
        if isinstance(delta, Call):
            return [*self._flush(), *self._begin_call(delta)]
        if self._buffered is not None:
            return [*self._flush(), delta]
        if self._text is None:
            return [delta]
        if isinstance(delta, Arguments):
            return _arguments_deltas(self._text.read(delta.text))
        ending, self._text = self._text, None
        # Only text that was not wrapped in `input` is left then.
        return [*(_arguments_deltas(ending.flush()) if isinstance(delta, EndItem) else []), delta]

    def _map_problem(self, problem: OutputProblem) -> list[Delta]:
        """Hold a problem of the buffered call back until the call is complete."""
        if self._buffered is None or problem.item != "open":
            return [problem]
        self._buffered.problems.append(problem)
        return []

    def _begin_call(self, delta: Call) -> list[Delta]:
        origin, self._text = self._origins.get(delta.name), None
        if origin is None:
            return [delta]
        if origin.kind in CLIENT_TOOLS:
            self._buffered = _BufferedCall(origin.kind)
            return []
        if origin.kind != "custom":
            return [Call(origin.name, "function", origin.namespace, origin.async_)]
        self._text = InputUnwrapper()
        return [Call(origin.name, "custom", origin.namespace, origin.async_)]

    def _flush(self) -> list[Delta]:
        """Return the deltas of the buffered call."""
        buffered, self._buffered = self._buffered, None
        return buffered.end() if buffered is not None else []


class _BufferedCall:
    """Buffer of a call whose item can be created only from complete arguments."""

    def __init__(self, name: str) -> None:
        self.problems: list[Delta] = []
        self._name = name
        self._parts: list[str] = []

    def feed(self, delta: Arguments) -> list[Delta]:
        self._parts.append(delta.text)
        return []

    def end(self) -> list[Delta]:
        arguments = "".join(self._parts)
        body = client.body(self._name, arguments)
        if body is None:
            return [Call(self._name), *_arguments_deltas(arguments), *self.problems]
        return [ClientCall(CLIENT_TOOLS[self._name].kind, body), *self.problems]


def _arguments_deltas(text: str) -> list[Delta]:
    return [Arguments(text)] if text else []
