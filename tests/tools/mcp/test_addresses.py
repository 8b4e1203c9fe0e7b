"""Addresses of MCP servers: internal hosts in every notation, at the list and at the call, and redirects."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from django.test import override_settings

from responses_app.tools.mcp.errors import UNREACHABLE, McpError
from responses_app.tools.mcp.servers import McpServer
from responses_app.tools.mcp.sessions import McpSessions
from tests.support.mcp.raw_server import Answer, RawMcpServer, raw_mcp_server, reply, respond
from tests.support.mcp.raw_sessions import LIMITS

DONE = reply(result={"content": [{"type": "text", "text": "done"}]})
LOOPBACK = frozenset({"127.0.0.1"})

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


def request_sessions(url: str) -> McpSessions:
    """Return the sessions of a request with a `server_url`."""
    return McpSessions({"raw": McpServer("raw", url)}, LIMITS, "project")


async def refusal(url: str) -> str:
    """Return the message with which the listing of the server at `url` fails."""
    sessions = request_sessions(url)
    try:
        with pytest.raises(McpError) as caught:
            await sessions.list_tools("raw")
        return str(caught.value)
    finally:
        await sessions.close()


INTERNAL_HOSTS = {
    "loopback": "127.0.0.1",
    "name": "localhost",
    "name with a dot": "localhost.",
    "short": "127.1",
    "decimal": "2130706433",
    "hexadecimal": "0x7f000001",
    "octal": "0177.0.0.1",
    "zero": "0",
    "IPv6 loopback": "[::1]",
    "IPv6 unspecified": "[::]",
    "IPv4-mapped": "[::ffff:127.0.0.1]",
    "IPv4-compatible": "[::127.0.0.1]",
    "NAT64": "[64:ff9b::127.0.0.1]",
    "6to4": "[2002:7f00:1::]",
    "zone": "[fe80::1%25lo]",
    "metadata": "169.254.169.254",
    "metadata over IPv6": "[fd00:ec2::254]",
    "mapped metadata": "[::ffff:a9fe:a9fe]",
    "decimal metadata": "2852039166",
}


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_internal_hosts_get_no_request(scheme: str) -> None:
    async with raw_mcp_server(DONE) as raw:
        # Side by side: each refusal takes a second, so that its time reveals nothing.
        messages = await asyncio.gather(*(refusal(f"{scheme}://{host}:{raw.port}/mcp") for host in INTERNAL_HOSTS.values()))
        reached = {
            name for name, message in zip(INTERNAL_HOSTS, messages, strict=True) if not message.startswith(UNREACHABLE[:-1])
        }
        assert (reached, raw.messages) == (set(), [])


async def test_call_is_checked_although_the_list_was_allowed() -> None:
    async with raw_mcp_server(DONE) as raw:
        first, second = request_sessions(raw.url()), request_sessions(raw.url())
        try:
            with override_settings(RESPONSES_MCP_PRIVATE_HOSTS=LOOPBACK):
                await first.list_tools("raw")
                raw.messages.clear()
            assert await second.list_tools("raw")
            with pytest.raises(McpError, match="not on the public internet"):
                await second.call("raw", "tool", {})
            assert raw.messages == []
        finally:
            await first.close()
            await second.close()


def moved(status: int, location: str) -> Answer:
    """Answer the first request with a redirect to `location`, and the others with a result."""
    left = [respond]

    async def answer(writer: asyncio.StreamWriter, message: dict[str, Any]) -> None:
        if left:
            left.pop()
            await respond(writer, status, b"", location=location)
        else:
            await DONE(writer, message)

    return answer


@pytest.mark.parametrize("status", [307, 308])
@override_settings(RESPONSES_MCP_PRIVATE_HOSTS=LOOPBACK)
async def test_redirect_within_the_origin_is_followed(status: int) -> None:
    async with raw_mcp_server(moved(status, "/mcp/")) as raw:
        sessions = request_sessions(raw.url())
        try:
            assert (await sessions.call("raw", "tool", {})).output == "done"
        finally:
            await sessions.close()


@pytest.mark.parametrize("host", ["localhost", "[::1]", "169.254.169.254", "127.0.0.1"])
@override_settings(RESPONSES_MCP_PRIVATE_HOSTS=frozenset({"127.0.0.1", "localhost"}))
async def test_redirect_to_another_origin_is_not_followed(host: str) -> None:
    async with raw_mcp_server(DONE) as other:
        url = f"http://{host}:{other.port}/mcp"
        async with raw_mcp_server(moved(307, url)) as raw:
            error = await call_error(raw)
        assert (error["type"], error["code"]) == ("http_error", 307)
        assert other.messages == []


async def call_error(raw: RawMcpServer) -> dict[str, Any]:
    sessions = request_sessions(raw.url())
    try:
        with pytest.raises(McpError) as caught:
            await sessions.call("raw", "tool", {})
        return caught.value.error
    finally:
        await sessions.close()
