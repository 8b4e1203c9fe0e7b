"""Page of the operator's MCP servers, with a test that lists the tools of a server. Credentials are never shown."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit

from asgiref.sync import sync_to_async
from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render

from responses_app.tools.limits import ToolLimits
from responses_app.tools.mcp.errors import McpError
from responses_app.tools.mcp.servers import McpServer, operator_server
from responses_app.tools.mcp.sessions import McpSessions
from responses_app.web.private import private

Json: TypeAlias = Mapping[str, Any]

# Seconds for the connection and the list of tools, after the start of a program.
TEST_LIMIT_S: Final = 20.0
# The cache of tool lists is separate for each project. No project has this name.
NO_PROJECT: Final = ""


@dataclass(frozen=True, slots=True)
class ListedTool:
    """Tool of an MCP server on the page. `annotations` are texts as `readOnlyHint: true`."""

    name: str
    description: str
    annotations: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TestResult:
    """Result of a test: the tools, or the error."""

    label: str
    tools: tuple[ListedTool, ...] = ()
    error: str = ""


@private("GET", "HEAD")
async def index(request: HttpRequest) -> HttpResponse:
    """Render GET /mcp-servers: the MCP servers of the operator. Only superusers may see the page."""
    await _require_superuser(request)
    return await _page(request)


@private("POST")
async def test(request: HttpRequest, label: str) -> HttpResponse:
    """List the tools of a server at POST /mcp-servers/LABEL/test, and render the page with the result."""
    await _require_superuser(request)
    values = settings.RESPONSES_MCP_SERVERS.get(label)
    if values is None:
        raise Http404
    return await _page(request, await run_test(operator_server(label, values)))


async def run_test(server: McpServer, limit_s: float = TEST_LIMIT_S) -> TestResult:
    """Connect to `server` and list the tools without the cache of lists.

    The limit is `limit_s` seconds, and for a program its time to start besides.
    """
    limits = ToolLimits.from_settings()
    limit_s += 0 if server.url else limits.start_timeout_s
    sessions = McpSessions({server.label: server}, limits, NO_PROJECT)
    try:
        async with asyncio.timeout(limit_s):
            listed = await sessions.list_tools(server.label, use_cache=False)
    except McpError as error:
        return TestResult(server.label, error=server.redact(str(error)))
    except TimeoutError:
        return TestResult(server.label, error=f"The MCP server did not list its tools within {limit_s:g} seconds.")
    finally:
        await sessions.close()
    return TestResult(server.label, tuple(_listed_tool(tool, server) for tool in listed))


async def _require_superuser(request: HttpRequest) -> None:
    """Raise PermissionDenied unless the user is a superuser."""
    if not (await request.auser()).is_superuser:
        raise PermissionDenied


async def _page(request: HttpRequest, result: TestResult | None = None) -> HttpResponse:
    servers = [_public_values(label, values) for label, values in settings.RESPONSES_MCP_SERVERS.items()]
    # Rendering queries the session and the user, which must not block the event loop.
    return await sync_to_async(render)(
        request, "web/mcp_servers.html", {"section": "files", "servers": servers, "result": result}
    )


def _public_values(label: str, values: Json) -> dict[str, str]:
    """Return the values of a server that the page may show. Arguments of a program may be secrets, as may a query."""
    shown = {"label": label, "description": values.get("description", ""), "connector_id": values.get("connector_id", "")}
    if "command" in values:
        return {**shown, "program": values["command"][0]}
    parts = urlsplit(values["url"])
    return {**shown, "url": f"{parts.scheme}://{parts.netloc}{parts.path}"}


def _listed_tool(tool: Json, server: McpServer) -> ListedTool:
    annotations = tool.get("annotations") or {}
    hints = tuple(server.redact(f"{name}: {_as_json_word(value)}") for name, value in annotations.items())
    return ListedTool(server.redact(tool["name"]), server.redact(tool.get("description", "")), hints)


def _as_json_word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
