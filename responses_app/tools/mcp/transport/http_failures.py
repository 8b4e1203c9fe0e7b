"""Failures of HTTP requests to an MCP server: a failed request is answered with a JSON-RPC error and ends no other request."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Callable

import httpx2
import orjson

from responses_app.outbound_http.certificates import certificate_problem
from responses_app.outbound_http.pinned_transport import AddressRefused, ResponseRefused
from responses_app.tools.mcp.errors import (
    BAD_CERTIFICATE,
    BROKEN,
    INTERNAL_ERROR,
    NO_ANSWER,
    REFUSED,
    SESSION_LOST,
    STOPPED,
    TOO_LONG,
    TOO_MANY_VALUES,
    UNREACHABLE,
    McpError,
    http_error,
)
from responses_app.tools.mcp.transport.lone_surrogates import SurrogateReplacer
from responses_app.tools.mcp.transport.value_count import ValueCount

# Statuses whose JSON-RPC errors say more than the status. The others come from proxies and from checks of credentials.
_JSON_RPC_STATUSES = frozenset({400, 404})


class FailureTransport(httpx2.AsyncBaseTransport):
    """Transport that turns failures of POST requests into JSON-RPC errors, which the MCP client gives to a single caller.

    Until `is_open` is set, a request that gets no response raises its error, so that opening a session fails at once.
    `status` is the newest HTTP status from 300 on. `on_failure` is called with each failure.
    """

    def __init__(self, inner: httpx2.AsyncBaseTransport, on_failure: Callable[[McpError], None]) -> None:
        self.status: int | None = None
        self.is_open = False
        self._inner, self._on_failure = inner, on_failure
        self._failures: dict[str, McpError] = {}

    def failure_of(self, text: str) -> McpError | None:
        """Return the failure whose mark is in `text`, the message of an error of the MCP client."""
        return next((failure for mark, failure in self._failures.items() if mark in text), None)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send `request`; a failed POST has a JSON-RPC error as response. Raises httpx2.HTTPError before the session is open."""
        try:
            response = await self._inner.handle_async_request(request)
        except (httpx2.HTTPError, httpx2.StreamError, OSError) as error:
            if request.method != "POST" or not self.is_open:
                raise
            return self._respond(request, 502, transport_error(error))
        if response.status_code >= 300:
            self.status = response.status_code
        if request.method == "POST" and self._is_failure(request, response):
            await response.aclose()
            failure = McpError(SESSION_LOST, 404, "http_error") if _loses_session(request, response) else None
            return self._respond(request, max(response.status_code, 400), failure or http_error(response.status_code))
        if isinstance(response.stream, httpx2.AsyncByteStream):
            count = ValueCount(is_stream=_has_type(response, "text/event-stream"))
            response.stream = _MarkingStream(response.stream, self.mark, count)
        return response

    async def aclose(self) -> None:
        """Close the connections."""
        await self._inner.aclose()

    def mark(self, failure: McpError) -> str:
        """Store `failure` and return the mark, for messages that the MCP client builds."""
        mark = secrets.token_hex(8)
        self._failures[mark] = failure
        self._on_failure(failure)
        return mark

    def _is_failure(self, request: httpx2.Request, response: httpx2.Response) -> bool:
        status = response.status_code
        if status in (307, 308):
            target = request.url.join(response.headers.get("location", ""))
            return _origin(target) != _origin(request.url)
        if _loses_session(request, response):
            return True
        return status >= 300 and not (status in _JSON_RPC_STATUSES and _has_type(response, "application/json"))

    def _respond(self, request: httpx2.Request, status: int, failure: McpError) -> httpx2.Response:
        error = {"code": INTERNAL_ERROR, "message": self.mark(failure)}
        body = orjson.dumps({"jsonrpc": "2.0", "id": None, "error": error})
        return httpx2.Response(status, headers={"Content-Type": "application/json"}, content=body, request=request)


class _MarkingStream(httpx2.AsyncByteStream):
    """Body whose errors carry the mark of a failure in their messages. Too many values are an error, lone surrogates are replaced."""

    def __init__(self, stream: httpx2.AsyncByteStream, mark: Callable[[McpError], str], count: ValueCount) -> None:
        self._stream, self._mark, self._count = stream, mark, count

    async def __aiter__(self) -> AsyncIterator[bytes]:
        replacer = SurrogateReplacer()
        try:
            async for chunk in self._stream:
                if self._count.is_exceeded_by(chunk):
                    break
                yield replacer.replace(chunk)
            else:
                yield replacer.end()
                return
        except (httpx2.HTTPError, httpx2.StreamError, OSError) as error:
            failure = (
                McpError(STOPPED) if isinstance(error, httpx2.NetworkError | httpx2.ProtocolError) else transport_error(error)
            )
            failure_type = self._refusal_type if isinstance(error, ResponseRefused) else httpx2.StreamError
            raise failure_type(self._mark(failure)) from error
        raise self._refusal_type(self._mark(McpError(TOO_MANY_VALUES)))

    @property
    def _refusal_type(self) -> type[httpx2.SSEError | httpx2.StreamError]:
        """Of the errors of a stream of events, the MCP client passes SSEError alone on: others mean that the connection was lost."""
        return httpx2.SSEError if self._count.is_stream else httpx2.StreamError

    async def aclose(self) -> None:
        await self._stream.aclose()


def transport_error(error: BaseException) -> McpError:
    """Return the error that the client sees for a request without a response, without addresses."""
    if isinstance(error, AddressRefused):
        return McpError(REFUSED)
    if isinstance(error, httpx2.HTTPStatusError):
        return http_error(error.response.status_code)
    if isinstance(error, ResponseRefused | httpx2.SSEError):
        return McpError(TOO_LONG if isinstance(error, ResponseRefused) else BROKEN)
    if problem := certificate_problem(error):
        return McpError(BAD_CERTIFICATE.format(problem))
    if isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout):
        return McpError(UNREACHABLE)
    if isinstance(error, TimeoutError | httpx2.TimeoutException):
        return McpError(NO_ANSWER)
    return McpError(STOPPED if isinstance(error, httpx2.TransportError) else UNREACHABLE)


def _loses_session(request: httpx2.Request, response: httpx2.Response) -> bool:
    """Return whether the server does not know the session: MCP 2025-11-25, Transports, "Session Management"."""
    return response.status_code == 404 and "mcp-session-id" in request.headers


def _has_type(response: httpx2.Response, content_type: str) -> bool:
    return bool(response.headers.get("content-type", "").lower().startswith(content_type))


def _origin(url: httpx2.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port
