"""Tool selection of a turn: offered, allowed and required tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from responses_app.dialects.base import Turn, UnsupportedInput

Tool: TypeAlias = Mapping[str, Any]

# Key of a function whose place a tool of gpt-oss takes: the name of the tool in the harmony format, which that model was trained with.
# Declarations of clients never have this key.
RECIPIENT: Final = "recipient"
# Key of a tool without `strict`: the schema that its calls follow. Declarations of clients never have this key either.
FOLLOWED: Final = "followed"


@dataclass(frozen=True, slots=True)
class Toolset:
    """`offered` tools go into the prompt; `callable` are the allowed names, None for any; `forced` must be called."""

    offered: Sequence[Tool]
    callable: frozenset[str] | None
    forced: Sequence[Tool]

    def allows(self, name: str) -> bool:
        """Return True if a call of `name` counts as a call, False if as text.

        With a free choice unknown names are calls too: the client sees the model's mistake.
        """
        return self.callable is None or name in self.callable


def recipients(tools: Sequence[Tool]) -> dict[str, str]:
    """Return the tools of gpt-oss among the functions `tools`: recipient -> name of the function."""
    return {str(tool[RECIPIENT]): str(tool["name"]) for tool in tools if RECIPIENT in tool}


def toolset(turn: Turn) -> Toolset:
    """Select the tools of a turn by `tool_choice`. Raises UnsupportedInput for unsupported tools and choices."""
    tools = [_check_function(tool, index) for index, tool in enumerate(turn.tools)]
    choice = turn.tool_choice
    if isinstance(choice, str):
        return _by_mode(choice, tools)
    if choice.get("type") == "allowed_tools":
        return _by_mode(str(choice.get("mode", "auto")), _allowed(choice, tools), only=True)
    if choice.get("type") == "function":
        return Toolset(tools, frozenset([str(choice.get("name"))]), [_find_tool(tools, choice.get("name"))])
    raise UnsupportedInput(
        f"Tool choice {choice.get('type')!r} is not supported with this model.", "tool_choice", "invalid_value"
    )


def _by_mode(mode: str, tools: Sequence[Tool], *, only: bool = False) -> Toolset:
    names = frozenset(str(tool["name"]) for tool in tools)
    if mode == "none":
        return Toolset((), frozenset(), ())
    if mode == "auto":
        return Toolset(tools, names if only else None, ())
    if mode != "required":
        raise UnsupportedInput(f"Invalid value: {mode!r}.", "tool_choice", "invalid_value")
    if not tools:
        raise UnsupportedInput(
            "Tool choice 'required' must be specified with 'tools' parameter.", "tool_choice", "invalid_value"
        )
    return Toolset(tools, names, tools)


def _check_function(tool: Tool, index: int) -> Tool:
    if tool.get("type") == "function":
        return tool
    raise UnsupportedInput(
        f"Tools of type {tool.get('type')!r} are not supported with this model.", f"tools[{index}].type", "invalid_value"
    )


def _allowed(choice: Tool, tools: Sequence[Tool]) -> list[Tool]:
    names = {str(_find_tool(tools, entry.get("name"))["name"]) for entry in choice.get("tools") or ()}
    return [tool for tool in tools if tool["name"] in names]


def _find_tool(tools: Sequence[Tool], name: object) -> Tool:
    match = next((tool for tool in tools if tool["name"] == name), None)
    if match is None:
        raise UnsupportedInput(f"Tool choice {name!r} not found in 'tools' parameter.", "tool_choice", "invalid_value")
    return match
