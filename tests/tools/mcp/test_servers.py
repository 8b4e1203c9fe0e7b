"""Servers of a request: addresses and credentials of the request, and of the operator."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from django.test import override_settings

from responses_app.tools.limits import ToolLimits
from responses_app.tools.mcp.errors import McpError
from responses_app.tools.mcp.servers import McpServer, server_of
from responses_app.tools.mcp.sessions import McpSessions
from tests.support.mcp.raw_server import RawMcpServer, raw_mcp_server, reply
from tests.support.mcp.raw_sessions import LIMITS

OPERATORS = {
    "wiki": {"url": "http://10.0.0.7/mcp", "authorization": "own", "headers": {"X-Key": "own"}},
    "mail": {"url": "https://mail.example", "connector_id": "connector_gmail"},
}
WIKI = {"Authorization": "Bearer own", "X-Key": "own"}


@pytest.mark.parametrize(
    ("tool", "headers", "server"),
    [
        ({"server_url": "https://a.example"}, {"A": "1"}, McpServer("wiki", "https://a.example", headers={"A": "1"})),
        ({}, {}, McpServer("wiki", "http://10.0.0.7/mcp", headers=WIKI, is_operators=True)),
        ({}, {"x-key": "1", "B": "2"}, McpServer("wiki", "http://10.0.0.7/mcp", headers={"B": "2", **WIKI}, is_operators=True)),
        ({"connector_id": "connector_gmail"}, {}, McpServer("wiki", "https://mail.example", is_operators=True)),
    ],
)
@override_settings(RESPONSES_MCP_SERVERS=OPERATORS)
def test_server_has_the_credentials_of_its_own_address(tool: Any, headers: dict[str, str], server: McpServer) -> None:
    assert server_of({"server_label": "wiki", **tool}, headers) == server


@pytest.mark.parametrize("tool", [{"server_label": "gone"}, {"server_label": "gone", "connector_id": "connector_gone"}])
def test_listing_of_a_removed_server_fails(tool: dict[str, str]) -> None:
    sessions = McpSessions({"gone": server_of(tool, {})}, ToolLimits(), "p")

    async def list_tools() -> None:
        try:
            await sessions.list_tools("gone")
        finally:
            await sessions.close()

    with pytest.raises(McpError):
        asyncio.run(list_tools())


DONE = reply(result={"content": [{"type": "text", "text": "done"}]})
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


async def call(raw: RawMcpServer, traceparent: str) -> None:
    server = replace(McpServer("raw", raw.url(), is_operators=True), traceparent=traceparent)
    sessions = McpSessions({"raw": server}, LIMITS, "project")
    try:
        assert (await sessions.call("raw", "tool", {})).output == "done"
    finally:
        await sessions.close()


@pytest.mark.anyio
async def test_call_carries_the_trace_in_a_header_and_in_the_message() -> None:
    async with raw_mcp_server(DONE) as raw:
        await call(raw, TRACE)
        (message,) = [message for message in raw.messages if message.get("method") == "tools/call"]
        assert message["params"]["_meta"]["traceparent"] == TRACE
        assert raw.headers["traceparent"] == TRACE


@pytest.mark.anyio
async def test_call_without_a_trace_carries_none() -> None:
    async with raw_mcp_server(DONE) as raw:
        await call(raw, "")
        assert "traceparent" not in raw.headers
        assert "traceparent" not in str(raw.messages)


def test_lists_of_tools_are_shared_by_requests_with_different_traces() -> None:
    server = McpServer("raw", "https://example.com/mcp")
    assert replace(server, traceparent=TRACE).identity == server.identity
