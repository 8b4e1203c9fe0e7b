"""MCP servers of a request: addresses and credentials, from the request and from the operator's settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import orjson
from django.conf import settings

from responses_app.tools.http_headers import bearer_header
from responses_app.tools.mcp import redaction

Json: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class McpServer:
    """MCP server with the label `label`: an HTTP server at `url`, or a program `command` of the operator.

    `headers` and `environment` have credentials. An operator's server may have an internal address. `traceparent` is the trace of the
    request (W3C Trace Context), which the server continues; empty without a trace.
    """

    label: str
    url: str | None = None
    command: tuple[str, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    is_operators: bool = False
    traceparent: str = ""

    @property
    def identity(self) -> bytes:
        """Everything that decides about the listed tools, credentials included. Only a hash may be stored."""
        values = [self.url, self.command, sorted(self.headers.items()), sorted(self.environment.items()), self.is_operators]
        return orjson.dumps(values)

    def redact(self, text: str) -> str:
        """Return `text` without the credentials of the server, which a server may repeat in answers."""
        return redaction.redact(text, self.headers.values(), self.environment.values())


def server_of(tool: Json, headers: Mapping[str, str]) -> McpServer:
    """Return the server of an `mcp` tool of a request, with the `headers` of the request.

    A tool without `server_url` names a server of the operator, by `connector_id` or else by label. The headers of the request are
    for that server too; the operator's headers count more. A server that the operator has removed since has no address.
    """
    label, url = tool["server_label"], tool.get("server_url")
    if url is not None:
        return McpServer(label, url, headers=headers)
    return operator_server(label, _operator_settings(tool), headers)


def operator_server(label: str, values: Json, headers: Mapping[str, str] | None = None) -> McpServer:
    """Return the server that `values` of RESPONSES_MCP_SERVERS describe. `headers` are headers of a request."""
    own_headers = dict(values.get("headers") or {})
    if values.get("authorization"):
        own_headers |= bearer_header(values["authorization"])
    command, environment = tuple(values.get("command") or ()), values.get("env") or {}
    names = {name.lower() for name in own_headers}
    request_headers = (
        {}
        if command
        else {**{name: value for name, value in (headers or {}).items() if name.lower() not in names}, **own_headers}
    )
    return McpServer(label, values.get("url"), command, request_headers, environment, is_operators=True)


def _operator_settings(tool: Json) -> Json:
    servers: Mapping[str, Json] = settings.RESPONSES_MCP_SERVERS
    connector = tool.get("connector_id")
    if connector is None:
        return servers.get(tool["server_label"], {})
    return next((values for values in servers.values() if values.get("connector_id") == connector), {})
