"""Session with an MCP server: a connection that a task of its own opens and closes, with limits for every wait."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, TypeVar

import httpx2
from django.conf import settings
from mcp import Client, MCPError, StdioServerParameters
from mcp.client import Transport
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CONNECTION_CLOSED, CallToolResult, Implementation, ListToolsResult

from responses_app.tools.limits import ToolLimits
from responses_app.tools.mcp.errors import McpError, http_error
from responses_app.tools.mcp.pinned_transport import MAX_BODY_BYTES, PinnedTransport
from responses_app.tools.mcp.servers import McpServer

logger = logging.getLogger("responses.tools")

CLOSE_LIMIT_S = 2.0
STOPPED = "The MCP server closed the connection."
UNREACHABLE = "The MCP server cannot be reached."
CLIENT = Implementation(name="verbatim", version="1")
Result = TypeVar("Result")


class McpSession:
    """Session with `server`. `call` and `list_page` may run side by side; `close` ends the session.

    The scopes of the client library must be left by the task that has entered them, so a task owns the connection.
    """

    def __init__(self, server: McpServer, limits: ToolLimits) -> None:
        self._server, self._limits = server, limits
        self._http: PinnedTransport | None = None
        self._client: Client | None = None
        self._closing = asyncio.Event()
        self._ready = asyncio.get_running_loop().create_future()
        self._owner: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Connect. Raises McpError; then nothing is left open."""
        self._owner = asyncio.create_task(self._own(), name=f"mcp {self._server.label}")
        try:
            async with asyncio.timeout(self._limits.connect_timeout_s):
                await asyncio.shield(self._ready)
        except TimeoutError:
            await self.close()
            raise McpError(f"The MCP server did not answer within {self._limits.connect_timeout_s:g} seconds.") from None
        except BaseException:
            await self.close()
            raise

    @property
    def is_open(self) -> bool:
        """Return whether calls are possible."""
        return self._client is not None and self._owner is not None and not self._owner.done() and not self._closing.is_set()

    async def list_page(self, cursor: str | None) -> ListToolsResult:
        """Return a page of the list of tools. Raises McpError."""
        assert self._client is not None  # noqa: S101 - open
        return await self._bounded(self._client.list_tools(cursor=cursor), _Clock(self._limits))

    async def call(self, name: str, arguments: Mapping[str, Any]) -> CallToolResult:
        """Call a tool. A progress notification begins the idle time again. Raises McpError."""
        assert self._client is not None  # noqa: S101 - open
        clock = _Clock(self._limits)

        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            del progress, total, message
            clock.restart_idle()

        return await self._bounded(self._client.call_tool(name, dict(arguments), progress_callback=on_progress), clock)

    async def close(self) -> None:
        """Close the connection; a server that does not let go is abandoned after CLOSE_LIMIT_S seconds."""
        self._closing.set()
        owner, self._client = self._owner, None
        if owner is None:
            return
        done, _ = await asyncio.wait({owner}, timeout=CLOSE_LIMIT_S)
        if not done:
            owner.cancel()
            await asyncio.wait({owner}, timeout=CLOSE_LIMIT_S)
        if self._ready.done() and not self._ready.cancelled():
            self._ready.exception()

    async def _own(self) -> None:
        """Open the connection, and close it when `close` is called or the connection is lost."""
        try:
            async with self._connect() as client:
                self._client = client
                if not self._ready.done():
                    self._ready.set_result(None)
                await self._closing.wait()
        except Exception as error:
            logger.info("MCP server %s: %s", self._server.label, _describe(error))
            if not self._ready.done():
                self._ready.set_exception(self._error(error))
        finally:
            if not self._ready.done():
                self._ready.set_exception(McpError(UNREACHABLE))

    @asynccontextmanager
    async def _connect(self) -> AsyncGenerator[Client, None]:
        """Connect by the streamable HTTP transport; by the older SSE transport if the server refuses that; or to a program."""
        server = self._server
        if server.url is None:
            async with Client(_stdio(server), client_info=CLIENT, cache=None) as client:
                yield client
            return
        if not httpx2.URL(server.url).path.rstrip("/").endswith("/sse"):
            stack = AsyncExitStack()
            try:
                client = await stack.enter_async_context(Client(self._streamable(server.url), client_info=CLIENT, cache=None))
            except Exception as error:
                await stack.aclose()
                if not self._may_speak_sse:
                    raise
                logger.info("MCP server %s: no streamable HTTP: %s", server.label, _describe(error))
            else:
                async with stack:
                    yield client
                return
        async with Client(self._sse(server.url), client_info=CLIENT, mode="legacy", cache=None) as client:
            yield client

    @property
    def _may_speak_sse(self) -> bool:
        """Return whether the server refused the streamable transport as servers of the older transport do."""
        return self._http is not None and self._http.status in (400, 404, 405, 406, 415)

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
        self._http = PinnedTransport(settings.RESPONSES_MCP_PRIVATE_HOSTS, is_trusted=self._server.is_operators)
        return httpx2.AsyncClient(
            transport=self._http,
            trust_env=False,
            follow_redirects=False,
            headers={"User-Agent": "Verbatim", **self._server.headers, "Accept-Encoding": "identity"},
            timeout=httpx2.Timeout(limits.connect_timeout_s, read=limits.call_timeout_s),
        )

    async def _bounded(self, work: Coroutine[Any, Any, Result], clock: _Clock) -> Result:
        """Return the result of `work` within the limits of `clock`, while the connection lasts. Raises McpError."""
        assert self._owner is not None  # noqa: S101 - open
        task = asyncio.create_task(work)
        try:
            while not task.done():
                await asyncio.wait({task, self._owner}, timeout=clock.left_s, return_when=asyncio.FIRST_COMPLETED)
                if self._owner.done() and not task.done():
                    raise McpError(STOPPED)
                if clock.left_s <= 0 and not task.done():
                    raise McpError(clock.message)
            return task.result()
        except McpError:
            raise
        except Exception as error:
            logger.info("MCP server %s: %s", self._server.label, _describe(error))
            if isinstance(error, MCPError) and error.error.code == CONNECTION_CLOSED:
                self._closing.set()
            raise self._error(error) from error
        finally:
            if not task.done():
                task.cancel()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait({task}, timeout=CLOSE_LIMIT_S / 2)

    def _error(self, error: BaseException) -> McpError:
        """Return the error that the client sees: no addresses, and nothing of the library but messages of the server."""
        http = self._http
        if http is not None and http.refusal is not None:
            return http.refusal
        cause = _cause(error)
        if isinstance(cause, McpError):
            return cause
        if isinstance(cause, httpx2.HTTPStatusError):
            return http_error(cause.response.status_code)
        if http is not None and http.status is not None:
            return http_error(http.status)
        if isinstance(cause, MCPError) and cause.error.code == CONNECTION_CLOSED:
            return McpError(STOPPED)
        if isinstance(cause, MCPError):
            return McpError(cause.error.message[:1000], cause.error.code)
        return McpError(UNREACHABLE if isinstance(cause, httpx2.HTTPError | OSError) else "The MCP server broke the protocol.")


class _Clock:
    """Limits of a call: silence, and the whole time."""

    def __init__(self, limits: ToolLimits) -> None:
        self._limits, self._began_s = limits, time.monotonic()
        self._heard_s = self._began_s

    def restart_idle(self) -> None:
        """Begin the idle time again."""
        self._heard_s = time.monotonic()

    @property
    def left_s(self) -> float:
        """Seconds that are left."""
        now, limits = time.monotonic(), self._limits
        return max(min(self._heard_s + limits.idle_timeout_s, self._began_s + limits.call_timeout_s) - now, 0.0)

    @property
    def message(self) -> str:
        """Message of the limit that was reached."""
        if time.monotonic() >= self._began_s + self._limits.call_timeout_s:
            return f"The call took longer than {self._limits.call_timeout_s:g} seconds and was stopped."
        return f"The MCP server was silent for {self._limits.idle_timeout_s:g} seconds, so the call was stopped."


def _stdio(server: McpServer) -> Transport:
    program, *arguments = server.command
    return stdio_client(StdioServerParameters(command=program, args=arguments, env=dict(server.environment)))


def _cause(error: BaseException) -> BaseException:
    """Return the first single error in a group of errors."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _describe(error: BaseException) -> str:
    cause = _cause(error)
    return f"{type(cause).__name__}: {cause}"[:300]
