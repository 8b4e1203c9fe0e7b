"""Server tools that an API key and its project may use: names, checks and error messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.conf import settings

from responses_app.errors import Forbidden
from responses_app.models import ApiKey
from responses_app.tools.registry import BY_TYPE, SERVER_TOOLS, is_run_by_server

# Name that allows MCP servers which a request names by `server_url`, and prefix of the names of the operator's servers.
MCP = "mcp"
# Name in a list of allowed tools that allows no tool.
NO_TOOL = "none"


def known_names() -> list[str]:
    """Return the names that a list of allowed tools may have, also the names of the operator's MCP servers."""
    names = sorted(tool.name for tool in SERVER_TOOLS)
    return [*names, MCP, *(f"{MCP}:{label}" for label in settings.RESPONSES_MCP_SERVERS), NO_TOOL]


def can_use(key: ApiKey, name: str) -> bool:
    """Return True if the key and its project may use the tool of this name, as `web_search` or `mcp:docs`."""
    return key.refusal("allowed_tools", name) is None


def can_use_type(key: ApiKey, kind: str) -> bool:
    """Return True if the key may use tools of this type; any MCP server counts for `mcp`. Tools of clients are always allowed."""
    if kind == MCP:
        names = _allowed(key)
        return names is None or any(name.partition(":")[0] == MCP for name in names)
    return kind not in BY_TYPE or can_use(key, BY_TYPE[kind].name)


def check_tools(key: ApiKey, tools: Sequence[Mapping[str, Any]]) -> None:
    """Check that the key may use all tools of a request that the server runs. Raises Forbidden, which names the tool."""
    for index, tool in enumerate(tools):
        name = _name(tool) if is_run_by_server(tool["type"]) else None
        subject = None if name is None else key.refusal("allowed_tools", name)
        if subject is not None:
            message = f"{subject} may not use the tool '{name}'. {_available(key)}"
            raise Forbidden(message, param=f"tools[{index}]", code="tool_not_allowed")


def _name(tool: Mapping[str, Any]) -> str | None:
    """Return the name of a server tool, as in a list of allowed tools."""
    if tool["type"] != MCP:
        return BY_TYPE[tool["type"]].name if tool["type"] in BY_TYPE else None
    if tool.get("server_url") is not None:
        return MCP
    return f"{MCP}:{_operator_label(tool)}"


def _operator_label(tool: Mapping[str, Any]) -> str:
    """Return the label of the operator's server; a tool with `connector_id` has a label of the client's choice."""
    connector = tool.get("connector_id")
    servers: Mapping[str, Mapping[str, Any]] = settings.RESPONSES_MCP_SERVERS
    if connector is None:
        return str(tool["server_label"])
    return next((label for label, values in servers.items() if values.get("connector_id") == connector), str(connector))


def _allowed(key: ApiKey) -> list[str] | None:
    """Return the names that the lists of the key and of its project allow; None without a list."""
    names = key.allowed_tools or (key.project_limits.allowed_tools if key.project_limits else [])
    return [name for name in names if can_use(key, name)] if names else None


def _available(key: ApiKey) -> str:
    names = [name for name in _allowed(key) or () if name != NO_TOOL]
    return f"Allowed tools: {', '.join(names)}." if names else "It may use no tool of this server."
