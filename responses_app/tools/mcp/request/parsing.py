"""Declarations of MCP servers in a request, validated and normalised to the form that the response repeats; credentials apart."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import SplitResult

from django.conf import settings
from pydantic import TypeAdapter, ValidationError

from responses_app.errors import InvalidRequest
from responses_app.outbound_http.addresses import is_host
from responses_app.tools.http_headers import bearer_header, header_problem, size_problem, value_problem
from responses_app.tools.mcp.request.schema import McpApprovalFilters, McpTool, McpToolFilter, McpToolNames
from responses_app.utils.json_setting import split_url
from responses_app.validation.base import validate
from responses_app.validation.errors import Loc, invalid, invalid_value, json_path, shorten, translate, wrong_type

VISIBLE_ASCII = re.compile(r"[\x21-\x7e]+")
TOOL_NAMES: TypeAdapter[list[str]] = TypeAdapter(McpToolNames)
PORTS = {"http": 80, "https": 443}


def parse_mcp_tool(raw: Mapping[str, Any], loc: Loc) -> dict[str, Any]:
    """Parse a tool of type `mcp` to the form that the response repeats, without credentials. Raises InvalidRequest."""
    tool = validate(McpTool, raw, loc)
    _check_address(tool, loc)
    _check_credentials(tool, loc)
    address = {"server_url": tool.server_url, "connector_id": tool.connector_id}
    return {
        "type": "mcp",
        "server_label": tool.server_label,
        **{name: value for name, value in address.items() if value is not None},
        "server_description": tool.server_description,
        "allowed_tools": _allowed_tools(tool.allowed_tools, (*loc, "allowed_tools")),
        "require_approval": _require_approval(tool.require_approval, (*loc, "require_approval")),
        **({"defer_loading": True} if tool.defer_loading else {}),
    }


def secret_headers(raw: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, str]]:
    """Return the HTTP headers for each MCP server by label, with the `Authorization`. `raw` are tools that were parsed."""
    secrets = {}
    for tool in raw:
        if tool["type"] == "mcp" and "mcp" not in settings.RESPONSES_INACTIVE_TOOLS:
            authorization = tool.get("authorization")
            secrets[tool["server_label"]] = {
                **(tool.get("headers") or {}),
                **(bearer_header(authorization) if authorization else {}),
            }
    return {label: headers for label, headers in secrets.items() if headers}


def _check_address(tool: McpTool, loc: Loc) -> None:
    if tool.tunnel_id is not None:
        message = "this server has no tunnels; the operator lists private servers in RESPONSES_MCP_SERVERS."
        raise invalid((*loc, "tunnel_id"), message)
    if tool.server_url is not None and tool.connector_id is not None:
        where = json_path(loc)
        message = f"Mutually exclusive parameters: '{where}.server_url' and '{where}.connector_id'."
        raise InvalidRequest(message, param=where, code="mutually_exclusive_parameters")
    if tool.server_url is not None:
        problem = _url_problem(tool.server_url)
        if problem:
            raise invalid((*loc, "server_url"), problem)
    elif _operator_server(tool) is None:
        raise _unknown_server(tool, loc)


def _unknown_server(tool: McpTool, loc: Loc) -> InvalidRequest:
    if tool.connector_id is not None:
        shown = shorten(tool.connector_id)
        message = f"this server has no connector '{shown}'; the operator lists connectors in RESPONSES_MCP_SERVERS."
        return invalid((*loc, "connector_id"), message)
    where = json_path((*loc, "server_url"))
    message = (
        f"Missing required parameter: '{where}'. A tool without 'server_url' and 'connector_id' needs the 'server_label' of a "
        "server that the operator lists in RESPONSES_MCP_SERVERS."
    )
    return InvalidRequest(message, param=where, code="missing_required_parameter")


def _operator_server(tool: McpTool) -> Mapping[str, Any] | None:
    """Return the operator's server of a tool without `server_url`; None if there is none."""
    servers: Mapping[str, Mapping[str, Any]] = settings.RESPONSES_MCP_SERVERS
    if tool.connector_id is None:
        return servers.get(tool.server_label)
    return next((one for one in servers.values() if one.get("connector_id") == tool.connector_id), None)


def _url_problem(url: str) -> str | None:
    """Return the reason why the URL of an MCP server is refused; None for an accepted URL."""
    parts = _split(url)
    if parts is None or parts.scheme not in PORTS or not is_host(parts.hostname or ""):
        return "expected an https URL with a host."
    if "@" in parts.netloc:
        return "a URL with a user name or a password is not allowed; use 'authorization'."
    if parts.scheme == "http" and not _is_private_host(parts):
        return "expected an https URL; http is allowed for hosts that the operator lists in RESPONSES_MCP_PRIVATE_HOSTS."
    return None


def _split(url: str) -> SplitResult | None:
    # urlsplit drops tabs and line feeds, and accepts blanks.
    return split_url(url) if VISIBLE_ASCII.fullmatch(url) else None


def _is_private_host(parts: SplitResult) -> bool:
    name = parts.hostname or ""
    host = f"[{name}]" if ":" in name else name
    port = parts.port or PORTS[parts.scheme]
    return not {host, f"{host}:{port}"}.isdisjoint(settings.RESPONSES_MCP_PRIVATE_HOSTS)


def _check_credentials(tool: McpTool, loc: Loc) -> None:
    """Check that the HTTP headers can be sent. No message contains a value. Raises InvalidRequest."""
    headers = tool.headers if tool.headers is not None else {}
    where = (*loc, "headers")
    if not isinstance(headers, dict):
        raise wrong_type(json_path(where), "an object", headers)
    for name, value in headers.items():
        if not isinstance(value, str):
            raise wrong_type(json_path((*where, shorten(name))), "a string", value)
        problem = header_problem(name, value)
        if problem:
            raise invalid((*where, shorten(name)), f"{problem}.")
    problem = size_problem(headers)
    if problem:
        raise invalid(where, f"{problem}.")
    problem = value_problem(tool.authorization or "")
    if problem:
        raise invalid((*loc, "authorization"), f"{problem}.")
    server = None if tool.server_url is not None else _operator_server(tool)
    if server is not None and "command" in server and (headers or tool.authorization):
        field = "headers" if headers else "authorization"
        raise invalid((*loc, field), "the operator's server of this label is used without HTTP and takes no credentials.")


def _allowed_tools(raw: object, loc: Loc) -> list[str] | dict[str, Any] | None:
    if raw is None:
        return None
    if isinstance(raw, dict):
        return _filter(McpToolFilter, raw, loc)
    if not isinstance(raw, list):
        raise wrong_type(json_path(loc), "an array or an object", raw)
    try:
        return TOOL_NAMES.validate_python(raw, strict=True)
    except ValidationError as error:
        raise translate(error, loc) from error


def _require_approval(raw: object, loc: Loc) -> str | dict[str, Any]:
    if raw is None:
        return "always"
    if isinstance(raw, dict):
        return _filter(McpApprovalFilters, raw, loc)
    if not isinstance(raw, str):
        raise wrong_type(json_path(loc), "a string or an object", raw)
    if raw not in ("always", "never"):
        raise invalid_value(json_path(loc), raw, "'always', 'never', or an object with 'always' and 'never'")
    return raw


def _filter(model: type[McpToolFilter | McpApprovalFilters], raw: object, loc: Loc) -> dict[str, Any]:
    return validate(model, raw, loc).model_dump(exclude_none=True)
