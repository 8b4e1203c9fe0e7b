"""Connections to an MCP server: streamable HTTP, the older SSE transport, or the pipes of a program."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from django.conf import settings
from mcp.client import Transport
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from responses_app.outbound_http.pinned_transport import MAX_BODY_BYTES, PinnedTransport
from responses_app.tools.limits import ToolLimits
from responses_app.tools.mcp.errors import McpError
from responses_app.tools.mcp.servers import McpServer
from responses_app.tools.mcp.transport.handshake import known_protocol
from responses_app.tools.mcp.transport.http_failures import FailureTransport
from responses_app.tools.mcp.transport.stdio import stdio_transport

# Statuses with which a server of the older transport answers a POST to its stream of events.
_NO_STREAMABLE_HTTP = frozenset({400, 404, 405, 406, 415})


class Connections:
    """Transports to `server`, in the order of attempts. `on_failure` is called with each failed request."""

    def __init__(self, server: McpServer, limits: ToolLimits, on_failure: Callable[[McpError], None]) -> None:
        self._server, self._limits, self._on_failure = server, limits, on_failure
        self._http: FailureTransport | None = None
        self._program_failure: McpError | None = None
        self.is_sse = False
        # The program has closed its output.
        self.has_ended = False

    def attempts(self) -> Iterator[Transport]:
        """Yield transports. A server that refuses streamable HTTP gets the older SSE transport."""
        url, known = self._server.url, known_protocol(self._server)
        if url is None:
            yield stdio_transport(self._server, self._fail_program, self._end_program)
            return
        if not (known is not None and known.is_sse) and not httpx2.URL(url).path.rstrip("/").endswith("/sse"):
            yield self._streamable(url)
        self.is_sse = True
        yield self._sse(url)

    @property
    def may_try_next(self) -> bool:
        """Return whether the server refused streamable HTTP as servers of the older transport do."""
        return not self.is_sse and self.status in _NO_STREAMABLE_HTTP

    @property
    def status(self) -> int | None:
        """Newest HTTP status from 300 on."""
        return None if self._http is None else self._http.status

    def mark_open(self) -> None:
        """Let failed requests end their own calls only: the session is open."""
        if self._http is not None:
            self._http.is_open, self._http.status = True, None

    def failure_of(self, text: str) -> McpError | None:
        """Return the failure whose mark is in `text`, or the failure of the program."""
        return self._program_failure if self._http is None else self._http.failure_of(text)

    def _fail_program(self, failure: McpError) -> None:
        self._program_failure = failure
        self._on_failure(failure)

    def _end_program(self) -> None:
        self.has_ended = True

    def _streamable(self, url: str) -> Transport:
        @asynccontextmanager
        async def connect() -> AsyncIterator[Any]:
            async with (
                self._http_client() as http,
                streamable_http_client(url, http_client=http, max_sse_event_size=MAX_BODY_BYTES) as streams,
            ):
                yield streams

        return connect()

    def _sse(self, url: str) -> Transport:
        def factory(
            headers: dict[str, str] | None = None, timeout: httpx2.Timeout | None = None, auth: httpx2.Auth | None = None
        ) -> httpx2.AsyncClient:
            del headers, timeout, auth
            return self._http_client()

        return sse_client(url, httpx_client_factory=factory)

    def _http_client(self) -> httpx2.AsyncClient:
        limits = self._limits
        pinned = PinnedTransport(settings.RESPONSES_MCP_PRIVATE_HOSTS, allow_internal=self._server.is_operators)
        self._http = FailureTransport(pinned, self._on_failure)
        trace = {"traceparent": self._server.traceparent} if self._server.traceparent else {}
        return httpx2.AsyncClient(
            transport=self._http,
            trust_env=False,
            follow_redirects=False,
            headers={"User-Agent": "Verbatim", **trace, **self._server.headers, "Accept-Encoding": "identity"},
            timeout=httpx2.Timeout(limits.connect_timeout_s, read=limits.call_timeout_s),
        )
