"""Errors of MCP servers, as the error objects of `mcp_call` items."""

from __future__ import annotations

from typing import Any

# Error codes of JSON-RPC 2.0, section 5.1, and the first code that is free for servers.
METHOD_NOT_FOUND, INVALID_PARAMS, INTERNAL_ERROR, SERVER_ERROR = -32601, -32602, -32603, -32000
# Integers of events are smaller.
MAX_INTEGER = 1 << 63

UNREACHABLE = "The MCP server cannot be reached."
REFUSED = "The MCP server cannot be reached: its host is not on the public internet, or has no address."
BAD_CERTIFICATE = "The certificate of the MCP server is not accepted: {}."
STOPPED = "The MCP server closed the connection before it had answered."
TOO_LONG = "The MCP server sent a response that is compressed or too long."
TOO_MANY_VALUES = "The MCP server sent a response with more than 100,000 JSON values."
TOO_MANY_REQUESTS = "The MCP server sent more than 1,000 requests without waiting for answers."
NO_ANSWER = "The MCP server does not answer."
BROKEN = "The MCP server sent an answer that is not MCP."
SESSION_LOST = "The MCP server does not know the session any more."
ASKS_USER = "The tool asks the user for input during the call, which this server does not support."
_HTTP_HINTS = {
    401: " It refuses the authorization.",
    403: " It refuses the authorization.",
    404: " It has no MCP at this path.",
    429: " It limits the rate of requests.",
}


class McpError(Exception):
    """Failure of an MCP server. `error` is the error object: `mcp_protocol_error` or `http_error`, a code and a message."""

    def __init__(self, message: str, code: int = SERVER_ERROR, kind: str = "mcp_protocol_error") -> None:
        super().__init__(message)
        # A server can choose a code that JSON of this server cannot have.
        code = code if abs(code) < MAX_INTEGER else SERVER_ERROR
        self.error: dict[str, Any] = {"type": kind, "code": code, "message": message}

    @property
    def is_session_lost(self) -> bool:
        """Return whether the server refused the call because it does not know the session, so that the call was not made."""
        return bool(self.error["message"] == SESSION_LOST)

    @property
    def is_connection_lost(self) -> bool:
        """Return whether the connection was lost during the call, whose outcome is unknown."""
        return bool(self.error["message"] == STOPPED)


def http_error(status: int) -> McpError:
    """Return the error for an HTTP status of the server."""
    hint = " Redirects to other addresses are not followed." if 300 <= status < 400 else _HTTP_HINTS.get(status, "")
    return McpError(f"The MCP server answered with HTTP status {status}.{hint}", status, "http_error")
