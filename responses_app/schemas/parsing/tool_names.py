"""Names across the tools of a request: labels of MCP servers, names of functions, and server tools that are declared once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from responses_app.schemas.tools import CLIENT
from responses_app.tools.functions.as_functions import function_name
from responses_app.tools.registry import SERVER_TOOLS, is_run_by_server
from responses_app.validation.errors import Loc, invalid

# Servers of a request: a connection is opened to each.
MAX_SERVERS = 32


def check_names(tools: Sequence[Mapping[str, Any]], loc: Loc) -> None:
    """Check that the tools of a request differ in their names, labels and types. Raises InvalidRequest."""
    _check_labels(tools, loc)
    _check_single(tools, loc)
    seen: set[str] = set()
    for index, tool in enumerate(tools):
        inside = [function_name(one["name"], tool["name"]) for one in tool["tools"]] if tool["type"] == "namespace" else []
        name_of = tool.get("name") or (tool["type"] if tool["type"] in CLIENT else None)
        for name in [name_of, *inside] if name_of else []:
            if name in seen:
                raise invalid((*loc, index, "name"), f"the name '{name}' is used twice.")
            seen.add(name)


def _check_single(tools: Sequence[Mapping[str, Any]], loc: Loc) -> None:
    """Check that each server tool is declared once. Raises InvalidRequest."""
    for server_tool in SERVER_TOOLS:
        declared = [
            index for index, tool in enumerate(tools) if tool["type"] in server_tool.types and is_run_by_server(tool["type"])
        ]
        if len(declared) > 1:
            raise invalid((*loc, declared[1], "type"), f"the tool '{tools[declared[1]]['type']}' is declared twice.")


def _check_labels(tools: Sequence[Mapping[str, Any]], loc: Loc) -> None:
    """Check the number of MCP servers, and that labels differ and begin no name of a function. Raises InvalidRequest."""
    servers = [(index, tool) for index, tool in enumerate(tools) if tool["type"] == "mcp" and is_run_by_server("mcp")]
    if len(servers) > MAX_SERVERS:
        raise invalid(
            loc, f"too many MCP servers. Expected at most {MAX_SERVERS}, but got {len(servers)}.", "array_above_max_length"
        )
    labels: set[str] = set()
    for index, tool in servers:
        label = tool["server_label"]
        if label in labels:
            raise invalid((*loc, index, "server_label"), f"the label '{label}' is used twice.")
        labels.add(label)
    for index, tool in enumerate(tools):
        label = next((one for one in labels for name in _names(tool) if name.startswith(f"{one}__")), None)
        if label is not None:
            message = f"names that begin with '{label}__' are those of the tools of the MCP server '{label}'."
            raise invalid((*loc, index, "name"), message)


def _names(tool: Mapping[str, Any]) -> list[str]:
    """Return the names of the functions that a tool is presented as."""
    if tool["type"] == "namespace":
        return [function_name(one["name"], tool["name"]) for one in tool["tools"]]
    return [tool["name"]] if tool["type"] in ("function", "custom") else []
