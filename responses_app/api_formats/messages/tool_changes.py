"""Tools that system messages between the others add and remove, as the tool runner of the anthropic package does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal, TypeAlias

from responses_app.api_formats.messages.mcp_toolsets import TOOLSET
from responses_app.schemas.options import Cacheable
from responses_app.validation.base import StrictModel, drop_nulls, validate
from responses_app.validation.errors import Loc, invalid, invalid_value, json_path

# Entry of `tools`, or a definition in a message, with the path of either in the request.
Entry: TypeAlias = tuple[dict[str, Any], Loc]
ADDITION: Final = "tool_addition"
TOOL_CHANGES: Final = (ADDITION, "tool_removal")


class ToolChange(Cacheable):
    """Block that adds or removes a tool."""

    type: Literal["tool_addition", "tool_removal"]
    tool: dict[str, Any]


class ReferredTool(StrictModel):
    """Tool of the request by name."""

    type: Literal["tool_reference"]
    name: str


class DefinedTool(StrictModel):
    """Tool by definition."""

    type: Literal["tool_definition"]
    definition: dict[str, Any]


def changed_tools(tools: Sequence[dict[str, Any]], changes: Sequence[Entry]) -> tuple[list[Entry], set[str]]:
    """Return the tools after all changes, and the names of tools that were added by name. Raises InvalidRequest.

    Each request has all messages, so the tools of its end are those that the model may call next.
    """
    entries: list[Entry] = [(tool, ("tools", index)) for index, tool in enumerate(tools)]
    removed: list[Entry] = []
    added: set[str] = set()
    for change, loc in changes:
        adds, tool = change["type"] == ADDITION, change["tool"]
        if adds and tool.get("type") == "tool_definition":
            definition = _definition(tool, (*loc, "tool"))
            entries = [entry for entry in entries if entry[0].get("name") != definition[0].get("name")] + [definition]
            continue
        allowed = "'tool_reference', 'tool_definition'" if adds else "'tool_reference'"
        if tool.get("type") != "tool_reference":
            raise invalid_value(json_path((*loc, "tool", "type")), tool.get("type"), allowed)
        name = validate(ReferredTool, tool, (*loc, "tool")).name
        named = [entry for entry in (*entries, *removed) if entry[0].get("name") == name]
        if not named:
            raise invalid((*loc, "tool", "name"), f"the request has no tool with the name '{name}' before this block.")
        entries, removed = ([entry for entry in group if entry[0].get("name") != name] for group in (entries, removed))
        (entries if adds else removed).extend(named)
        (added.add if adds else added.discard)(name)
    return entries, added


def _definition(tool: dict[str, Any], loc: Loc) -> Entry:
    """Return a tool that a message defines. Raises InvalidRequest."""
    at = (*loc, "definition")
    definition = drop_nulls(validate(DefinedTool, tool, loc).definition, at)
    if definition.get("type") == TOOLSET:
        raise invalid((*at, "type"), f"an '{TOOLSET}' stands in 'tools' alone.")
    return definition, at
