"""Errors of MCP servers, as the error objects of `mcp_call` items."""

from __future__ import annotations

from typing import Any

# Error codes of JSON-RPC 2.0, section 5.1, and the first code that is free for servers.
METHOD_NOT_FOUND, INVALID_PARAMS, INTERNAL_ERROR, SERVER_ERROR = -32601, -32602, -32603, -32000


class McpError(Exception):
    """Failure of an MCP server. `error` is the error object: `mcp_protocol_error` or `http_error`, a code and a message."""

    def __init__(self, message: str, code: int = SERVER_ERROR, kind: str = "mcp_protocol_error") -> None:
        super().__init__(message)
        self.error: dict[str, Any] = {"type": kind, "code": code, "message": message}


def http_error(status: int) -> McpError:
    """Return the error for an HTTP status of the server."""
    hints = {401: " It refuses the authorization.", 403: " It refuses the authorization.", 404: " It has no MCP at this path."}
    return McpError(f"The MCP server answered with HTTP status {status}.{hints.get(status, '')}", status, "http_error")
