"""Sessions of the server with a raw MCP server."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from responses_app.tools.limits import ToolLimits
from responses_app.tools.mcp.servers import McpServer
from responses_app.tools.mcp.sessions import McpSessions
from tests.support.mcp.raw_server import Answer, RawMcpServer, raw_mcp_server

SECRET = "Bearer sk-secret-of-the-user"
LIMITS = ToolLimits(connect_timeout_s=60, idle_timeout_s=600, call_timeout_s=600)


@asynccontextmanager
async def opened(
    answer: Answer, path: str = "/mcp", limits: ToolLimits = LIMITS
) -> AsyncGenerator[tuple[McpSessions, RawMcpServer]]:
    """Run a raw server and yield sessions with it under the label `raw`."""
    async with raw_mcp_server(answer) as raw:
        sessions = new_sessions(raw, path, limits)
        try:
            yield sessions, raw
        finally:
            await sessions.close()


def new_sessions(raw: RawMcpServer, path: str = "/mcp", limits: ToolLimits = LIMITS) -> McpSessions:
    """Return the sessions of another run with the same server."""
    server = McpServer("raw", raw.url(path), headers={"Authorization": SECRET}, is_operators=True)
    return McpSessions({"raw": server}, limits, "project")
