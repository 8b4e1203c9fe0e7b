"""`tool_choice`: a mode, a forced tool, or a list of allowed tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from responses_app.errors import InvalidRequest
from responses_app.schemas.tools import API_SERVER_TOOLS, CLIENT
from responses_app.tools.registry import BY_TYPE, is_run_by_server, server_types
from responses_app.validation.base import StrictModel, drop_nulls, validate
from responses_app.validation.errors import Loc, invalid_value, missing_type, shorten, wrong_type

MODES = ("none", "auto", "required")
# Tools that a choice names by type alone.
CHOSEN = ("shell", "apply_patch", "computer", "computer_use_preview")
# Alias of `computer` and `computer_use_preview`.
COMPUTER = "computer_use"


class NamedTool(StrictModel):
    """`tool_choice` that forces a tool; also an entry of `allowed_tools`."""

    type: Literal["function", "custom"]
    name: str


class NamedMcpTool(StrictModel):
    """`tool_choice` of an MCP server, or of one of its tools; also an entry of `allowed_tools`."""

    type: Literal["mcp"]
    server_label: str
    name: str | None = None


class ServerToolChoice(StrictModel):
    """`tool_choice` of a tool with a separate type; also an entry of `allowed_tools`."""

    type: str


class AllowedTools(StrictModel):
    """`tool_choice` that restricts the tools. Open Responses allows an absent mode and the mode `none`."""

    type: Literal["allowed_tools"]
    mode: Literal["auto", "required", "none"] = "auto"
    tools: Annotated[list[Any], Field(min_length=1, max_length=128)]


def parse_tool_choice(raw: object, tools: Sequence[Mapping[str, Any]]) -> str | dict[str, Any]:
    """Parse `tool_choice` and check the choice against the tools of the request. Raises InvalidRequest."""
    if raw is None:
        return "auto"
    if isinstance(raw, str):
        if raw not in MODES:
            raise invalid_value("tool_choice", raw, MODES)
        if raw == "required" and not tools:
            raise InvalidRequest(
                "Tool choice 'required' must be specified with 'tools' parameter.", param="tool_choice", code="invalid_value"
            )
        return raw
    if not isinstance(raw, dict):
        raise wrong_type("tool_choice", "a string or an object", raw)
    raw = drop_nulls(raw, ("tool_choice",))
    kind = _kind(raw, ("tool_choice",))
    if kind == COMPUTER:
        kind = next((str(tool["type"]) for tool in tools if tool["type"] in CHOSEN[2:]), "computer")
        raw = {**raw, "type": kind}
    if kind == "allowed_tools":
        return _allowed(raw, tools)
    if kind in API_SERVER_TOOLS and not is_run_by_server(kind):
        _present(kind, tools)
        message = f"Tool choice '{kind}': this server runs no tools of that type, so the model cannot be made to call one."
        raise InvalidRequest(message, param="tool_choice", code="invalid_value")
    allowed = ("function", "custom", *CHOSEN, *server_types())
    if kind not in allowed:
        raise invalid_value("tool_choice.type", kind, (*allowed, "allowed_tools"))
    return _named(raw, tools, ("tool_choice",))


def _kind(raw: Mapping[str, Any], loc: Loc) -> str:
    kind = raw.get("type")
    if not isinstance(kind, str):
        raise missing_type(loc, kind)
    return kind


def _allowed(raw: dict[str, Any], tools: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Parse `allowed_tools`. Raises InvalidRequest."""
    allowed = validate(AllowedTools, raw, ("tool_choice",))
    named = [_entry(one, tools, ("tool_choice", "tools", index)) for index, one in enumerate(allowed.tools)]
    return {"type": "allowed_tools", "mode": allowed.mode, "tools": named}


def _entry(raw: object, tools: Sequence[Mapping[str, Any]], loc: Loc) -> dict[str, Any]:
    """Parse an entry of `allowed_tools`. An inactive server tool is accepted; the model is not offered the tool."""
    raw = drop_nulls(raw, loc)
    kind = _kind(raw, loc)
    if kind not in API_SERVER_TOOLS or is_run_by_server(kind):
        return _named(raw, tools, loc)
    _present(kind, tools)
    return raw


def _named(raw: dict[str, Any], tools: Sequence[Mapping[str, Any]], loc: Loc) -> dict[str, Any]:
    kind = _kind(raw, loc)
    if kind == "mcp" and is_run_by_server(kind):
        return _named_mcp(raw, tools, loc)
    if is_run_by_server(kind):
        return _chosen_server_tool(raw, kind, tools, loc)
    if kind in CLIENT and set(raw) == {"type"}:
        _present(kind, tools)
        return {"type": kind}
    named = validate(NamedTool, raw, loc)
    if (named.type, named.name) not in {(tool["type"], tool.get("name")) for tool in tools}:
        raise _absent(named.name)
    return {"type": named.type, "name": named.name}


def _named_mcp(raw: dict[str, Any], tools: Sequence[Mapping[str, Any]], loc: Loc) -> dict[str, Any]:
    """Parse the choice of an MCP server, or of a tool that the request allows. Raises InvalidRequest."""
    named = validate(NamedMcpTool, raw, loc)
    tool = next((one for one in tools if one["type"] == "mcp" and one["server_label"] == named.server_label), None)
    if tool is None:
        raise _absent(named.server_label)
    allowed = tool["allowed_tools"]
    names = allowed.get("tool_names") if isinstance(allowed, Mapping) else allowed
    if named.name is not None and names is not None and named.name not in names:
        raise _absent(f"{named.server_label}.{named.name}")
    return named.model_dump(exclude_none=True)


def _chosen_server_tool(raw: dict[str, Any], kind: str, tools: Sequence[Mapping[str, Any]], loc: Loc) -> dict[str, Any]:
    """Parse the choice of a server tool. Raises InvalidRequest."""
    validate(ServerToolChoice, raw, loc)
    tool = BY_TYPE[kind]
    if not any(one["type"] in tool.types for one in tools):
        raise _absent(kind)
    if tool.find(tools) is None and loc == ("tool_choice",):
        message = (
            f"Tool choice '{kind}': the tool has no access to the web in this request, so the model cannot be made to call it."
        )
        raise InvalidRequest(message, param="tool_choice", code="invalid_value")
    return {"type": kind}


def _present(kind: str, tools: Sequence[Mapping[str, Any]]) -> None:
    """Require a tool of the type `kind`. Raises InvalidRequest."""
    if not any(tool["type"] == kind for tool in tools):
        raise _absent(kind)


def _absent(name: str) -> InvalidRequest:
    return InvalidRequest(
        f"Tool choice '{shorten(name)}' not found in 'tools' parameter.", param="tool_choice", code="invalid_value"
    )
