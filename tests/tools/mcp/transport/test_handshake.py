"""Protocol eras: the probe, the older handshake, and what is remembered of a server."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from cachetools import TTLCache

from responses_app.tools.limits import ToolLimits
from responses_app.tools.mcp import sessions as sessions_module
from responses_app.tools.mcp.errors import McpError
from responses_app.tools.mcp.transport import handshake
from tests.support.mcp.raw_server import DISCOVERED, Answer, RawMcpServer, reply, respond
from tests.support.mcp.raw_sessions import new_sessions, opened
from tests.support.waiting import eventually

DONE = reply(result={"content": [{"type": "text", "text": "done"}], "resultType": "complete"})
HANDSHAKE = ["initialize", "notifications/initialized"]
HEADER_TOOL = {
    "name": "tool",
    "inputSchema": {"type": "object", "properties": {"city": {"type": "string", "x-mcp-header": "City"}}},
}
LISTED: dict[str, Any] = {"tools": [HEADER_TOOL], "resultType": "complete", "ttlMs": 0, "cacheScope": "public"}
HEADER_MISMATCH = -32020

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


@pytest.fixture
def short_probe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handshake, "PROBE_LIMIT_S", 0.2)


async def call_again(raw: RawMcpServer, path: str = "/mcp") -> list[str]:
    """Call the tool in a separate run. Return the methods of the messages."""
    raw.messages.clear()
    sessions = new_sessions(raw, path)
    try:
        assert (await sessions.call("raw", "tool", {})).output == "done"
        return [method for method in raw.methods if method]
    finally:
        await sessions.close()


async def test_older_server_is_probed_once() -> None:
    async with opened(DONE) as (_, raw):
        assert await call_again(raw) == ["server/discover", *HANDSHAKE, "tools/call"]
        assert await call_again(raw) == [*HANDSHAKE, "tools/call"]


@pytest.mark.usefixtures("short_probe")
async def test_older_server_that_ignores_the_probe_is_connected() -> None:
    async with opened(DONE) as (_, raw):
        raw.silent = {"server/discover"}
        assert await call_again(raw) == ["server/discover", *HANDSHAKE, "tools/call"]
        assert await call_again(raw) == [*HANDSHAKE, "tools/call"]


@pytest.mark.usefixtures("short_probe")
async def test_connect_limit_counts_behind_the_probe() -> None:
    limits = ToolLimits(connect_timeout_s=1, idle_timeout_s=10, call_timeout_s=20)
    async with opened(DONE, limits=limits) as (sessions, raw):
        raw.silent = {"server/discover", "initialize"}
        with pytest.raises(McpError, match=r"does not answer\. The limit is 1 seconds"):
            await sessions.call("raw", "tool", {})
        assert raw.methods == ["server/discover", "initialize"]


async def test_long_answer_to_the_probe_is_not_remembered() -> None:
    async with opened(DONE) as (_, raw):
        for length, again in ((40_000, ["server/discover"]), (1_000, [])):
            raw.results = {"server/discover": {**DISCOVERED, "instructions": "x" * length}}
            assert await call_again(raw) == ["server/discover", "tools/call"]
            assert await call_again(raw) == [*again, "tools/call"]


@pytest.mark.usefixtures("short_probe")
async def test_slow_server_of_the_newer_era_is_probed_again() -> None:
    async with opened(DONE) as (sessions, raw):
        raw.first_silent, raw.results = {"server/discover"}, {"server/discover": DISCOVERED}
        assert (await sessions.call("raw", "tool", {})).output == "done"
        assert raw.methods == ["server/discover", "initialize", "server/discover", "tools/call"]


async def test_server_of_the_newer_era_needs_one_request_for_a_later_call() -> None:
    async with opened(DONE) as (_, raw):
        raw.results["server/discover"] = DISCOVERED
        assert await call_again(raw) == ["server/discover", "tools/call"]
        assert await call_again(raw) == ["tools/call"]


async def test_changed_protocol_is_found_after_a_failure() -> None:
    answers: list[Answer] = [DONE, reply(error={"code": -32600, "message": "Unknown revision"}), DONE]

    async def answer(writer: asyncio.StreamWriter, message: dict[str, Any]) -> None:
        await answers.pop(0)(writer, message)

    async with opened(answer) as (sessions, raw):
        raw.results["server/discover"] = DISCOVERED
        await call_again(raw)
        del raw.results["server/discover"]
        with pytest.raises(McpError, match="Unknown revision"):
            await sessions.call("raw", "tool", {})
        assert await call_again(raw) == ["server/discover", *HANDSHAKE, "tools/call"]


async def test_server_of_the_older_transport_gets_one_request_of_the_newer() -> None:
    async def answer(writer: asyncio.StreamWriter, message: dict[str, Any]) -> None:
        raw.send_event({"jsonrpc": "2.0", "id": message["id"], "result": {"content": [{"type": "text", "text": "done"}]}})
        await respond(writer, 202, b"")

    async with opened(answer) as (_, raw):
        assert await call_again(raw, "/old") == [*HANDSHAKE, "tools/call"]
        first = raw.refused
        assert await call_again(raw, "/old") == [*HANDSHAKE, "tools/call"]
        assert first > 0
        assert raw.refused == first


async def test_cancellation_in_the_newer_era_closes_the_request() -> None:
    closed = asyncio.Event()

    async def answer(writer: asyncio.StreamWriter, message: dict[str, Any]) -> None:
        assert raw.reader is not None
        assert await raw.reader.read() == b""
        closed.set()

    async with opened(answer) as (sessions, raw):
        raw.results["server/discover"] = DISCOVERED
        call = asyncio.create_task(sessions.call("raw", "tool", {}))
        await eventually(lambda: "tools/call" in raw.methods)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        async with asyncio.timeout(60):
            await closed.wait()
        assert raw.methods == ["server/discover", "tools/call"]


async def test_call_whose_headers_do_not_match_is_made_again_with_the_listed_headers() -> None:
    headers: list[str | None] = []

    async def answer(writer: asyncio.StreamWriter, message: dict[str, Any]) -> None:
        headers.append(raw.headers.get("mcp-param-city"))
        mismatch = reply(error={"code": HEADER_MISMATCH, "message": "Header mismatch"})
        await (mismatch if headers[-1] is None else DONE)(writer, message)

    async with opened(answer) as (sessions, raw):
        raw.results |= {"server/discover": DISCOVERED, "tools/list": LISTED}
        assert (await sessions.call("raw", "tool", {"city": "Oslo"})).output == "done"
        assert raw.methods == ["server/discover", "tools/call", "tools/list", "tools/call"]
        assert headers == [None, "Oslo"]


async def test_list_is_read_again_when_the_cached_list_has_expired(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = {"now_s": 0.0}
    lists_of_tools = TTLCache[bytes, Any](sessions_module.LIST_CACHE_SIZE, sessions_module.LIST_CACHE_S, lambda: clock["now_s"])
    monkeypatch.setattr(sessions_module, "_lists", lists_of_tools)
    async with opened(DONE) as (sessions, raw):
        for now_s, lists in [(0.0, 1), (299.0, 1), (301.0, 2)]:
            clock["now_s"] = now_s
            await sessions.list_tools("raw")
            assert raw.methods.count("tools/list") == lists


async def test_session_is_opened_before_its_first_call() -> None:
    async with opened(DONE) as (sessions, raw):
        sessions.prepare("raw")
        sessions.prepare("raw")
        await eventually(lambda: sessions.is_open("raw") and raw.methods == ["server/discover", *HANDSHAKE])
        raw.messages.clear()
        assert (await sessions.call("raw", "tool", {})).output == "done"
        assert raw.methods == ["tools/call"]


async def test_failure_of_an_early_opening_is_raised_at_the_call() -> None:
    async with opened(DONE) as (sessions, raw):
        raw.results.clear()
        sessions.prepare("raw")
        await eventually(lambda: "initialize" in raw.methods)
        with pytest.raises(McpError, match="Method not found"):
            await sessions.call("raw", "tool", {})
        assert raw.methods == ["server/discover", "initialize"]


async def test_close_ends_an_opening_that_nothing_waits_for() -> None:
    async with opened(DONE) as (sessions, raw):
        raw.silent = {"server/discover"}
        sessions.prepare("raw")
        await eventually(lambda: raw.methods == ["server/discover"])
        async with asyncio.timeout(60):
            await sessions.close()
        assert not sessions.is_open("raw")
