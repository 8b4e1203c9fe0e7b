"""MCP servers of Messages: `mcp_servers`, and the entries `mcp_toolset` of `tools` that choose among the tools of a server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from responses_app.schemas.options import Cacheable
from responses_app.validation.base import Array, StrictModel, drop_nulls, validate
from responses_app.validation.errors import Loc, invalid, json_path

TOOLSET: Final = "mcp_toolset"


class McpConfiguration(StrictModel):
    """`tool_configuration` of an MCP server: the older form, for requests without `mcp_toolset`."""

    enabled: Literal[True] | None = None
    allowed_tools: Array[str] | None = None


class McpServerUrl(StrictModel):
    """MCP server of `mcp_servers`."""

    type: Literal["url"]
    name: str
    url: str
    authorization_token: str | None = None
    tool_configuration: McpConfiguration | None = None


class McpToolConfig(StrictModel):
    """`default_config` of a toolset, or the configuration of a tool."""

    enabled: bool | None = None
    # Without an effect: the tools of MCP servers are offered from the start.
    defer_loading: bool | None = None


# By the name of the tool.
ToolConfigs = Annotated[dict[Annotated[str, Field(min_length=1, max_length=256)], McpToolConfig], Field(max_length=1024)]


class McpToolset(Cacheable):
    """Choice among the tools of a server of `mcp_servers`."""

    type: Literal["mcp_toolset"]
    mcp_server_name: str
    default_config: McpToolConfig = McpToolConfig()
    configs: ToolConfigs | None = None


def mcp_tools(tools: Sequence[dict[str, Any]], servers: Sequence[McpServerUrl]) -> Iterator[tuple[dict[str, Any], Loc]]:
    """Yield the MCP servers as tools of Responses, with the path of each server. Raises InvalidRequest.

    As in Anthropic's API a request with toolsets has one for each server. Without toolsets `tool_configuration` holds.
    """
    toolsets = _toolsets(tools, {server.name for server in servers})
    for index, server in enumerate(servers):
        loc = ("mcp_servers", index)
        if not toolsets:
            allowed = server.tool_configuration.allowed_tools if server.tool_configuration else None
        elif server.name not in toolsets:
            raise invalid((*loc, "name"), f"no '{TOOLSET}' of 'tools' has this 'mcp_server_name'.")
        elif server.tool_configuration is not None:
            raise invalid((*loc, "tool_configuration"), f"it cannot be used with an '{TOOLSET}', which has 'configs'.")
        else:
            allowed = _allowed_tools(*toolsets[server.name])
        tool = {
            "type": "mcp",
            "server_label": server.name,
            "server_url": server.url,
            "authorization": server.authorization_token,
            "allowed_tools": allowed,
            "require_approval": "never",
        }
        yield tool, loc


def _toolsets(tools: Sequence[dict[str, Any]], names: set[str]) -> dict[str, tuple[McpToolset, Loc]]:
    """Return the toolsets and their paths by the name of the server. Raises InvalidRequest."""
    toolsets: dict[str, tuple[McpToolset, Loc]] = {}
    for index, tool in enumerate(tools):
        if tool.get("type") != TOOLSET:
            continue
        loc = ("tools", index)
        toolset = validate(McpToolset, drop_nulls(tool, loc), loc)
        where = (*loc, "mcp_server_name")
        if toolset.mcp_server_name not in names:
            raise invalid(where, f"'mcp_servers' has no server with the name '{toolset.mcp_server_name}'.")
        if toolset.mcp_server_name in toolsets:
            earlier = json_path(toolsets[toolset.mcp_server_name][1])
            raise invalid(where, f"the server has the toolset '{earlier}' already.")
        toolsets[toolset.mcp_server_name] = toolset, loc
    return toolsets


def _allowed_tools(toolset: McpToolset, loc: Loc) -> list[str] | None:
    """Return the names of the enabled tools; None for all. Raises InvalidRequest if only some of all are disabled."""
    configs = toolset.configs or {}
    if toolset.default_config.enabled is False:
        return [name for name, config in configs.items() if config.enabled]
    for name, config in configs.items():
        if config.enabled is False:
            problem = (
                "this server cannot leave out single tools. Disable all in 'default_config', and enable the others by name."
            )
            raise invalid((*loc, "configs", name, "enabled"), problem)
    return None
