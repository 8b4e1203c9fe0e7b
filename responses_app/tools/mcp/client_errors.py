"""Errors of the MCP client library, as errors that the client of the API sees."""

from __future__ import annotations

from collections.abc import Callable

from mcp import MCPError
from mcp_types import CONNECTION_CLOSED, INVALID_REQUEST, PARSE_ERROR, REQUEST_TIMEOUT

from responses_app.outbound_http.certificates import TRUST, certificate_problem
from responses_app.tools.mcp.errors import ASKS_USER, BROKEN, NO_ANSWER, STOPPED, TOO_LONG, McpError, http_error
from responses_app.tools.mcp.transport.http_failures import transport_error

MAX_MESSAGE_LENGTH = 1000
# Beginnings of messages of the client library, which can contain addresses and pieces of the answer.
_LIBRARY_MESSAGES = {
    "SSE stream failed: Server-sent event exceeded": TOO_LONG,
    "SSE stream": STOPPED,
    "Failed to parse": BROKEN,
    "Unexpected content type": BROKEN,
    "server answered a request with 202": BROKEN,
    "Redirect to": BROKEN,
}
# Parts of the messages of servers whose requests to the client were refused.
_REFUSED_REQUESTS = ("Elicitation not supported", "Sampling not supported", "no back-channel")


def client_error(error: BaseException, failure_of: Callable[[str], McpError | None], status: int | None) -> McpError:
    """Return the error for `error`: the marked failure of the transport, or a message without addresses.

    `status` is the newest HTTP status of the server, which counts where the library has dropped it.
    """
    cause = _cause(error)
    if isinstance(cause, McpError):
        return cause
    if isinstance(cause, MCPError):
        return failure_of(cause.message) or _protocol_error(cause, status)
    marked = failure_of(str(cause))
    # Validation errors of pydantic are ValueErrors.
    return marked or (McpError(BROKEN) if isinstance(cause, ValueError | RuntimeError) else transport_error(cause))


def describe(error: BaseException) -> str:
    """Return the type of the first single error, or of a certificate, for the log: messages can contain secrets."""
    cause = _cause(error)
    if problem := certificate_problem(cause):
        return f"{problem}. {TRUST}"
    return f"{type(cause).__name__} {cause.code}" if isinstance(cause, MCPError) else type(cause).__name__


def _protocol_error(error: MCPError, status: int | None) -> McpError:
    for beginning, message in _LIBRARY_MESSAGES.items():
        if error.code in (CONNECTION_CLOSED, INVALID_REQUEST, PARSE_ERROR) and error.message.startswith(beginning):
            return McpError(message, error.code)
    if any(part in error.message for part in _REFUSED_REQUESTS):
        return McpError(ASKS_USER, error.code)
    if error.code == CONNECTION_CLOSED:
        return McpError(STOPPED)
    if error.code == REQUEST_TIMEOUT:
        return McpError(NO_ANSWER, error.code)
    if error.message in ("Not Found", "Server returned an error response", "Session terminated") and status is not None:
        return http_error(status)
    return McpError(error.message[:MAX_MESSAGE_LENGTH] or BROKEN, error.code)


def _cause(error: BaseException) -> BaseException:
    """Return the first single error in a group of errors."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
