"""Session with an MCP server: a connection that a separate task opens and closes, with limits for every wait."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from contextvars import Context
from typing import Any, TypeVar

from mcp import ClientSession, MCPError
from mcp_types import (
    CONNECTION_CLOSED,
    HEADER_MISMATCH,
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    Implementation,
    InputRequiredResult,
    ListToolsResult,
    PaginatedRequestParams,
    RequestParamsMeta,
)
from pydantic import TypeAdapter

from responses_app.observability.records import current_response
from responses_app.tools.limits import CallClock, ToolLimits
from responses_app.tools.mcp.client_errors import client_error, describe
from responses_app.tools.mcp.errors import ASKS_USER, NO_ANSWER, STOPPED, TOO_MANY_REQUESTS, UNREACHABLE, McpError
from responses_app.tools.mcp.servers import McpServer
from responses_app.tools.mcp.transport.connections import Connections
from responses_app.tools.mcp.transport.handshake import PROBE_LIMIT_S, forget_protocol, settle_protocol
from responses_app.tools.mcp.transport.request_limit import RequestLimit

logger = logging.getLogger("responses.tools")
# The client library logs arguments, answers and session ids.
for _name in ("mcp", "client", "httpx2", "httpcore2"):
    logging.getLogger(_name).setLevel(logging.CRITICAL)

CLOSE_LIMIT_S = 2.0
CANCEL_LIMIT_S = 0.8
CLIENT = Implementation(name="verbatim", version="1")
Result = TypeVar("Result")
_RESULTS: TypeAdapter[CallToolResult | InputRequiredResult] = TypeAdapter(CallToolResult | InputRequiredResult)
# Owners of connections whose servers do not let go within CLOSE_LIMIT_S.
_abandoned: set[asyncio.Task[None]] = set()


class McpSession:
    """Session with `server`. `call` and `list_page` may run side by side; `close` ends the session.

    A session with a program may serve several runs, one after the other: `reuse` begins the next. The scopes of the client library
    must be left by the task that has entered them, so a task owns the connection.
    """

    def __init__(self, server: McpServer, limits: ToolLimits) -> None:
        self.server, self._limits = server, limits
        self._response = current_response.get()
        self._connections = Connections(server, limits, self._on_failure)
        self._client: ClientSession | None = None
        self._is_stale = False
        # Calls and listings that run, have failed, or were given up: the program may still work on these.
        self._unanswered = 0
        self._closing = asyncio.Event()
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        # An abandoned connection may fail after nothing waits for it any more.
        self._ready.add_done_callback(lambda ready: ready.cancelled() or ready.exception())
        self._lost: asyncio.Future[McpError] = asyncio.get_running_loop().create_future()
        self._owner: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Connect. Raises McpError; then nothing is left open.

        The probe for the newest protocol has a time of its own, so that a server that ignores the probe can still connect.
        """
        # The session may outlive the run, so the task does not keep the context of the run.
        work, name = self._hold_connection(), f"mcp {self.server.label}"
        self._owner = asyncio.get_running_loop().create_task(work, name=name, context=Context())
        limit_s = self._limits.connect_timeout_s if self.server.url else self._limits.start_timeout_s
        try:
            async with asyncio.timeout(limit_s + min(PROBE_LIMIT_S, limit_s)):
                await asyncio.shield(self._ready)
        except TimeoutError:
            await self.close()
            raise McpError(f"{NO_ANSWER} The limit is {limit_s:g} seconds.") from None
        except BaseException:
            await self.close()
            raise

    @property
    def is_open(self) -> bool:
        """Return whether new calls are possible."""
        is_unusable = self._is_stale or self._connections.has_ended or self._lost.done() or self._closing.is_set()
        return self._client is not None and not is_unusable

    @property
    def is_reusable(self) -> bool:
        """Return whether another run may use the session: a session with a program that has answered everything."""
        return self.is_open and self.server.url is None and not self._unanswered

    def reuse(self, server: McpServer, limits: ToolLimits) -> None:
        """Begin the use by the run of the caller. `server` has the same identity, and the trace of that run."""
        self.server, self._limits, self._response = server, limits, current_response.get()

    async def list_page(self, cursor: str | None) -> ListToolsResult:
        """Return a page of the list of tools. Raises McpError."""
        return await self._bounded(self._list_page(cursor), CallClock(self._limits))

    async def call(
        self, name: str, arguments: Mapping[str, Any], report_progress: Callable[[], None] | None = None
    ) -> CallToolResult:
        """Call a tool. A progress notification begins the idle time again. Raises McpError."""
        clock = CallClock(self._limits)

        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            del progress, total, message
            clock.restart_idle()
            if report_progress is not None:
                report_progress()

        result = await self._bounded(self._call(name, arguments, on_progress), clock)
        if isinstance(result, InputRequiredResult):
            raise McpError(ASKS_USER)
        return result

    async def close(self) -> None:
        """Close the connection; a server that does not let go is abandoned after CLOSE_LIMIT_S seconds."""
        self._closing.set()
        owner, client, self._client = self._owner, self._client, None
        if owner is None:
            return
        if client is None:
            owner.cancel()
        await asyncio.wait({owner}, timeout=CLOSE_LIMIT_S * 0.75)
        if not owner.done():
            owner.cancel()
            await asyncio.wait({owner}, timeout=CLOSE_LIMIT_S * 0.25)
        if not owner.done():
            _abandoned.add(owner)
            owner.add_done_callback(_abandoned.discard)

    async def _hold_connection(self) -> None:
        """Open the connection, and close it when `close` is called or the connection is lost."""
        failure = McpError(STOPPED)
        try:
            async with self._connect() as client:
                self._client = client
                self._connections.mark_open()
                if not self._ready.done():
                    self._ready.set_result(None)
                await self._closing.wait()
        except Exception as error:
            self._log(describe(error))
            failure = self._error(error)
        finally:
            self._client = None
            if not self._ready.done():
                self._ready.set_exception(failure if failure.error["message"] != STOPPED else McpError(UNREACHABLE))
            self._lose(failure)

    @asynccontextmanager
    async def _connect(self) -> AsyncGenerator[ClientSession, None]:
        """Connect by the streamable HTTP transport; by the older SSE transport if the server refuses that; or to a program."""
        connections, stack = self._connections, AsyncExitStack()
        for transport in connections.attempts():
            try:
                async with AsyncExitStack() as attempt:
                    streams = await attempt.enter_async_context(transport)
                    limited = RequestLimit(self._end_flood).wrap(*streams)
                    client = await attempt.enter_async_context(ClientSession(*limited, client_info=CLIENT))
                    await settle_protocol(client, self.server, is_sse=connections.is_sse)
                    stack = attempt.pop_all()
                break
            except Exception as error:
                forget_protocol(self.server)
                if not connections.may_try_next:
                    raise
                self._log(f"no streamable HTTP: {describe(error)}")
        async with stack:
            yield client

    async def _list_page(self, cursor: str | None) -> ListToolsResult:
        return await self._open_client.list_tools(params=PaginatedRequestParams(cursor=cursor))

    async def _call(self, name: str, arguments: Mapping[str, Any], on_progress: Any) -> CallToolResult | InputRequiredResult:
        """Call a tool without checking the result: patterns of a server's schema could block the process for hours."""
        session = self._open_client
        params = CallToolRequestParams(name=name, arguments=dict(arguments))
        if self.server.traceparent:
            params.meta = RequestParamsMeta(traceparent=self.server.traceparent)  # type: ignore[typeddict-unknown-key]
        request = CallToolRequest(params=params)
        try:
            return await session.send_request(request, _RESULTS, progress_callback=on_progress)
        except MCPError as error:
            if error.code != HEADER_MISMATCH:
                raise
        # The server reads arguments from headers, whose names are in the list of tools.
        await self._find_tool(name)
        return await session.send_request(request, _RESULTS, progress_callback=on_progress)

    async def _find_tool(self, name: str) -> None:
        """Read the list of tools up to the page with the tool `name`."""
        cursor = None
        for _ in range(self._limits.list_pages):
            page = await self._list_page(cursor)
            cursor = page.next_cursor
            if cursor is None or any(tool.name == name for tool in page.tools):
                return

    def _log(self, problem: str) -> None:
        logger.info("%sMCP server %s: %s", f"{self._response}: " if self._response else "", self.server.label, problem)

    @property
    def _open_client(self) -> ClientSession:
        if self._client is None:
            raise McpError(STOPPED)
        return self._client

    async def _bounded(self, work: Coroutine[Any, Any, Result], clock: CallClock) -> Result:
        """Return the result of `work` within the limits of `clock`, while the connection lasts. Raises McpError."""
        self._unanswered += 1
        task = asyncio.create_task(work)
        awaited: set[asyncio.Future[Any]] = {task, self._lost}
        try:
            while not task.done():
                await asyncio.wait(awaited, timeout=clock.left_s, return_when=asyncio.FIRST_COMPLETED)
                if self._lost.done() and not task.done():
                    raise self._lost.result()
                if clock.left_s <= 0 and not task.done():
                    raise McpError(clock.message)
            result = task.result()
            self._unanswered -= 1
            return result
        except McpError:
            raise
        except Exception as error:
            self._log(describe(error))
            forget_protocol(self.server)
            if isinstance(error, MCPError):
                self._on_client_error(error)
            raise self._error(error) from None
        finally:
            if not task.done():
                task.cancel()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait({task}, timeout=CANCEL_LIMIT_S)

    def _on_client_error(self, error: MCPError) -> None:
        """Use the session for no new call if the server has lost it; end the session if its program has ended."""
        if error.code == CONNECTION_CLOSED or self._connections.status == 404:
            self._is_stale = True
        if error.code == CONNECTION_CLOSED and self.server.url is None:
            self._closing.set()

    def _on_failure(self, failure: McpError) -> None:
        """Use the session for no new call. End it where the caller of the failed request gets no answer: with SSE and programs."""
        if self._client is None:
            return
        self._is_stale = True
        if self._connections.is_sse or self.server.url is None:
            self._lose(failure)
            self._closing.set()

    def _end_flood(self) -> None:
        """End the session with a server that sends more requests than this client answers."""
        failure = McpError(TOO_MANY_REQUESTS)
        if not self._ready.done():
            self._ready.set_exception(failure)
        self._is_stale = True
        self._lose(failure)
        self._closing.set()

    def _lose(self, failure: McpError) -> None:
        if not self._lost.done():
            self._lost.set_result(failure)

    def _error(self, error: BaseException) -> McpError:
        """Return the error that the client sees, without secrets."""
        api_error = client_error(error, self._connections.failure_of, self._connections.status)
        return McpError(self.server.redact(str(api_error)), api_error.error["code"], api_error.error["type"])
