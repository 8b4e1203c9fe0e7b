"""MCP servers that answer calls with failures, garbage, endless data or nothing: each is a clear error of that call alone."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
from functools import partial
from typing import Any

import pytest

from responses_app.tools.limits import ToolLimits
from responses_app.tools.mcp.errors import BROKEN, STOPPED, TOO_LONG, TOO_MANY_REQUESTS, TOO_MANY_VALUES, McpError
from responses_app.tools.mcp.transport import request_limit
from responses_app.tools.mcp.transport.value_count import MAX_VALUES, ValueCount
from tests.support.mcp.raw_server import DISCOVERED, Answer, RawMcpServer, reply, respond
from tests.support.mcp.raw_sessions import LIMITS, SECRET, opened
from tests.support.waiting import eventually

EMPTY = {"type": "object", "properties": {}}


def nested(levels: int) -> dict[str, Any]:
    """Return a schema with so many levels of objects."""
    schema: dict[str, Any] = {"type": "object"}
    for _ in range(levels - 1):
        schema = {"type": "object", "x": schema}
    return schema


MANY: list[dict[str, Any]] = [{}] * (MAX_VALUES // 2 + 1)
BODY_PIECES = (5, 65_536)
pytestmark = [pytest.mark.anyio, pytest.mark.slow]


async def failure(answer: Answer, path: str = "/mcp", limits: ToolLimits = LIMITS) -> dict[str, Any]:
    """Return the error object of a call."""
    async with opened(answer, path, limits) as (sessions, _):
        with pytest.raises(McpError) as caught:
            await sessions.call("raw", "tool", {})
        return caught.value.error


def fixed(status: int, body: bytes = b"", **headers: str) -> Answer:
    async def answer(writer: asyncio.StreamWriter, message: dict[str, Any]) -> None:
        await respond(writer, status, body, **headers)

    return answer


def endless(head: bytes) -> Answer:
    """Answer with a head and chunks of data until the client closes the connection."""

    async def answer(writer: asyncio.StreamWriter, message: dict[str, Any]) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n" + head + b"\r\n\r\n")
        while not writer.is_closing():
            writer.write(b"x" * 65536)
            await writer.drain()

    return answer


async def many_long_notifications(writer: asyncio.StreamWriter, message: dict[str, Any]) -> None:
    """Answer with notifications of 1 MB until the client closes the connection."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
    data = {"level": "info", "data": "x" * 1_000_000}
    while not writer.is_closing():
        writer.write(event({"jsonrpc": "2.0", "method": "notifications/message", "params": data}))
        await writer.drain()


async def hang_up(writer: asyncio.StreamWriter, message: dict[str, Any]) -> None:
    writer.close()


async def hang_up_in_the_middle(writer: asyncio.StreamWriter, message: dict[str, Any]) -> None:
    await respond(writer, 200, b'{"jsonrpc"', content_length="1000")
    writer.close()


async def stream_without_answer(writer: asyncio.StreamWriter, message: dict[str, Any]) -> None:
    await respond(writer, 200, b": comment\n\n", content_type="text/event-stream")


async def no_answer(writer: asyncio.StreamWriter, message: dict[str, Any]) -> None:
    await asyncio.Event().wait()


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        pytest.param(fixed(500), 500, id="500"),
        pytest.param(fixed(503, b"<html>no", content_type="text/html"), 503, id="503 with HTML"),
        pytest.param(fixed(401, b'{"error":"no"}'), 401, id="401"),
        pytest.param(fixed(403), 403, id="403"),
        pytest.param(fixed(404, content_type="text/plain"), 404, id="404"),
        pytest.param(fixed(429), 429, id="429"),
        pytest.param(fixed(302, location="http://169.254.169.254/latest"), 302, id="redirect"),
        pytest.param(fixed(307, location="https://internal.example/mcp"), 307, id="redirect with the method"),
    ],
)
@pytest.mark.parametrize("path", ["/mcp", "/sse"])
async def test_http_status_is_an_http_error(answer: Answer, status: int, path: str) -> None:
    error = await failure(answer, path)
    assert (error["type"], error["code"]) == ("http_error", status)
    assert error["message"].startswith(f"The MCP server answered with HTTP status {status}.")
    assert not any(word in error["message"] for word in ("169.254", "127.0.0.1", "internal", "sk-secret"))


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        pytest.param(fixed(200, b"{garbage"), BROKEN, id="no JSON"),
        pytest.param(reply(result={"content": 7}), BROKEN, id="no result of a tool"),
        pytest.param(fixed(200, b"<html>", content_type="text/html"), BROKEN, id="HTML"),
        pytest.param(fixed(200, b"data: {garbage\n\n", content_type="text/event-stream"), BROKEN, id="event without JSON"),
        pytest.param(fixed(202), BROKEN, id="202"),
        pytest.param(hang_up, STOPPED, id="hang-up"),
        pytest.param(hang_up_in_the_middle, STOPPED, id="hang-up in the body"),
        pytest.param(stream_without_answer, STOPPED, id="stream without an answer"),
        pytest.param(fixed(200, b"x", content_encoding="gzip"), TOO_LONG, id="compressed"),
        pytest.param(endless(b"Content-Type: application/json\r\nContent-Length: 1000000000"), TOO_LONG, id="1 GB"),
        pytest.param(endless(b"Content-Type: application/json\r\nConnection: close"), TOO_LONG, id="endless body"),
        pytest.param(endless(b"Content-Type: text/event-stream\r\nConnection: close"), TOO_LONG, id="endless event"),
        pytest.param(
            fixed(200, b"data: [" + b"{}," * 60_000 + b"{}]\n\n", content_type="text/event-stream"),
            TOO_MANY_VALUES,
            id="event of many values",
        ),
        pytest.param(
            reply(result={"content": [], "structuredContent": {"a": [{}] * 60_000}}), TOO_MANY_VALUES, id="many values"
        ),
    ],
)
async def test_broken_answer_is_a_protocol_error(answer: Answer, message: str) -> None:
    error = await failure(answer)
    assert (error["type"], error["message"]) == ("mcp_protocol_error", message)


async def test_error_of_the_server_has_its_code_and_no_credentials() -> None:
    error = await failure(reply(error={"code": -32602, "message": f"unknown tool for {SECRET}"}))
    assert error == {"type": "mcp_protocol_error", "code": -32602, "message": "unknown tool for [redacted]"}


async def test_error_code_that_events_cannot_have_is_replaced() -> None:
    error = await failure(reply(error={"code": 10**30, "message": "broken"}))
    assert error == {"type": "mcp_protocol_error", "code": -32000, "message": "broken"}


async def test_result_repeats_no_credentials() -> None:
    content = [{"type": "text", "text": f"your headers: {SECRET} {SECRET.partition(' ')[2]}"}]
    async with opened(reply(result={"content": content})) as (sessions, raw):
        assert (await sessions.call("raw", "tool", {})).output == "your headers: [redacted] [redacted]"
        assert raw.headers["authorization"] == SECRET


async def test_call_that_requires_input_of_the_user_is_an_error() -> None:
    request = {"method": "elicitation/create", "params": {"mode": "form", "message": "Sure?", "requestedSchema": EMPTY}}
    result = {"resultType": "input_required", "inputRequests": {"1": request}, "requestState": "state"}
    async with opened(reply(result=result)) as (sessions, raw):
        raw.results["server/discover"] = DISCOVERED
        with pytest.raises(McpError, match="asks the user for input"):
            await sessions.call("raw", "tool", {})
        assert raw.methods == ["server/discover", "tools/call"]


def pinging(raw: list[RawMcpServer], *, waits: bool) -> Answer:
    """Send 30 requests before the result. With `waits` each is sent after the answer to the one before."""

    async def answer(writer: asyncio.StreamWriter, message: dict[str, Any]) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
        for number in range(1, 31):
            writer.write(event({"jsonrpc": "2.0", "id": number, "method": "ping"}))
            if waits:
                await eventually(partial(has_answers, raw[0], number))
        writer.write(event({"jsonrpc": "2.0", "id": message["id"], "result": {"content": []}}))
        await writer.drain()
        writer.close()

    return answer


def has_answers(raw: RawMcpServer, count: int) -> bool:
    """Return whether the client has answered `count` requests."""
    return raw.methods.count("") == count


def event(message: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(message)}\n\n".encode()


async def test_server_that_floods_the_client_with_requests_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the server: each request without an answer is a task, and the end of a million tasks takes seconds."""
    monkeypatch.setattr(request_limit, "MAX_UNANSWERED", 20)
    raw: list[RawMcpServer] = []
    async with opened(pinging(raw, waits=False)) as (sessions, flooding):
        raw.append(flooding)
        with pytest.raises(McpError, match=TOO_MANY_REQUESTS):
            await sessions.call("raw", "tool", {})
        flooding.answer = reply(result={"content": [{"type": "text", "text": "done"}]})
        assert (await sessions.call("raw", "tool", {})).output == "done"
        assert flooding.methods.count("initialize") == 2


async def test_server_that_waits_for_the_answers_to_its_requests_may_send_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_limit, "MAX_UNANSWERED", 20)
    raw: list[RawMcpServer] = []
    async with opened(pinging(raw, waits=True)) as (sessions, waiting):
        raw.append(waiting)
        assert (await sessions.call("raw", "tool", {})).output == ""


async def test_stream_over_the_limit_is_no_lost_connection_after_which_a_call_is_made_again() -> None:
    async with opened(many_long_notifications) as (sessions, raw):
        with pytest.raises(McpError, match=TOO_LONG):
            await sessions.call("raw", "tool", {}, is_repeatable=True)
        assert raw.methods.count("tools/call") == 1


@pytest.mark.parametrize("path", ["/mcp", "/sse"])
async def test_silent_server_ends_at_the_idle_limit(path: str) -> None:
    limits = ToolLimits(connect_timeout_s=10, idle_timeout_s=0.3, call_timeout_s=20)
    assert "silent for 0.3 seconds" in (await failure(no_answer, path, limits))["message"]


async def test_failed_call_ends_no_other_call() -> None:
    gate = asyncio.Event()

    async def answer(writer: asyncio.StreamWriter, message: dict[str, Any]) -> None:
        if message["params"]["name"] == "fails":
            await hang_up_in_the_middle(writer, message)
            return
        await gate.wait()
        await reply(result={"content": [{"type": "text", "text": "done"}]})(writer, message)

    async with opened(answer) as (sessions, raw):
        waiting = asyncio.create_task(sessions.call("raw", "waits", {}))
        await eventually(lambda: "tools/call" in raw.methods)
        with pytest.raises(McpError):
            await sessions.call("raw", "fails", {})
        gate.set()
        assert (await waiting).output == "done"


async def test_session_that_broke_is_replaced_at_the_next_call() -> None:
    answers = [hang_up, reply(result={"content": []})]

    async def answer(writer: asyncio.StreamWriter, message: dict[str, Any]) -> None:
        await answers.pop(0)(writer, message)

    async with opened(answer) as (sessions, raw):
        with pytest.raises(McpError):
            await sessions.call("raw", "tool", {})
        await sessions.call("raw", "tool", {})
        assert raw.methods.count("initialize") == 2


async def test_cancelled_call_is_cancelled_at_the_server() -> None:
    async with opened(no_answer) as (sessions, raw):
        call = asyncio.create_task(sessions.call("raw", "tool", {}))
        await eventually(lambda: "tools/call" in raw.methods)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(call, 60)
        await eventually(lambda: "notifications/cancelled" in raw.methods, limit_s=60)


async def test_close_ends_a_call_without_an_answer() -> None:
    async with opened(no_answer) as (sessions, raw):
        call = asyncio.create_task(sessions.call("raw", "tool", {}))
        await eventually(lambda: "tools/call" in raw.methods)
        await asyncio.wait_for(sessions.close(), 60)
        with pytest.raises(McpError):
            await call


@pytest.mark.parametrize(
    ("page", "words"),
    [
        pytest.param({"tools": [], "nextCursor": "again"}, "more than 32 pages", id="pages without end"),
        pytest.param(
            {"tools": [{"name": str(n), "inputSchema": {"type": "object"}} for n in range(129)]},
            "more than 128 tools",
            id="tools",
        ),
        pytest.param(
            {"tools": [{"name": "a", "inputSchema": {"type": "object", "x": "y" * 1048576}}]},
            "bytes of schemas",
            id="long schema",
        ),
        pytest.param(
            {"tools": [{"name": "a", "inputSchema": {"type": "object", "x": 10**30}}]},
            "schema that cannot be stored",
            id="number",
        ),
        pytest.param({"tools": [{"name": "a", "inputSchema": nested(96)}]}, "more than 95 levels", id="deep schema"),
        pytest.param({"tools": "none"}, BROKEN, id="no list"),
    ],
)
async def test_list_beyond_a_limit_is_an_error(page: dict[str, Any], words: str) -> None:
    async with opened(no_answer) as (sessions, raw):
        raw.results["tools/list"] = page
        with pytest.raises(McpError, match=words):
            await sessions.list_tools("raw")


async def test_list_that_is_remembered_is_no_tree_of_objects() -> None:
    """Remember a list of 120 kB, which takes 2 MB as objects."""
    schema = {"type": "object", "x": [[]] * 40_000}
    async with opened(no_answer) as (sessions, raw):
        raw.results["tools/list"] = {"tools": [{"name": "tool", "inputSchema": schema}]}
        gc.collect()
        before = len(gc.get_objects())
        assert len((await sessions.list_tools("raw"))[0]["input_schema"]["x"]) == 40_000
        await sessions.close()
        gc.collect()
        assert len(gc.get_objects()) - before < 40_000


async def test_result_of_a_schema_with_a_slow_pattern_is_not_checked() -> None:
    schema = {"type": "object", "properties": {"a": {"pattern": "^(a+)+$"}}}
    tool = {"name": "tool", "inputSchema": {"type": "object"}, "outputSchema": schema}
    value = {"a": "a" * 40 + "!"}
    async with opened(reply(result={"content": [], "structuredContent": value})) as (sessions, raw):
        raw.results["tools/list"] = {"tools": [tool]}
        await sessions.list_tools("raw")
        assert json.loads((await sessions.call("raw", "tool", {})).output or "") == value


async def test_log_has_no_credentials_arguments_and_answers(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with opened(fixed(200, b'{"answer-of-the-server"')) as (sessions, _):
        with pytest.raises(McpError):
            await sessions.call("raw", "tool", {"word": "argument-of-the-call"})
    messages = " ".join(record.getMessage() + str(record.exc_info) for record in caplog.records)
    assert not any(word in messages for word in ("sk-secret", "argument-of-the-call", "answer-of-the-server"))


def is_exceeded(body: bytes, piece: int, *, is_stream: bool = False) -> bool:
    count = ValueCount(is_stream=is_stream)
    return any(count.is_exceeded_by(body[at : at + piece]) for at in range(0, len(body), piece))


@pytest.mark.parametrize("piece", BODY_PIECES)
@pytest.mark.parametrize("text", [",[{" * MAX_VALUES, '",\\' * MAX_VALUES, "\\,\n\r,"])
def test_text_does_not_count(text: str, piece: int) -> None:
    body = json.dumps({"a": text, text: [], "b": "\\"}).encode()
    assert not is_exceeded(body, piece)
    assert is_exceeded(json.dumps({"a": text, "many": MANY}).encode(), piece)


@pytest.mark.parametrize(
    "value", [[1] * (MAX_VALUES + 2), [""] * (MAX_VALUES + 2), MANY, {str(n): 0 for n in range(MAX_VALUES + 2)}]
)
def test_values_count(value: Any) -> None:
    assert is_exceeded(json.dumps(value).encode(), 65_536)
    assert is_exceeded(json.dumps(value, indent=1).encode(), 65_536)
    assert not is_exceeded(json.dumps(MANY[: MAX_VALUES // 3]).encode(), 65_536)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_each_event_of_a_stream_is_counted(end: str) -> None:
    half = json.dumps(MANY[: MAX_VALUES // 3])
    event = f"data: {half}{end}{end}".encode()
    assert not is_exceeded(event * 3, 4096, is_stream=True)
    # Lines of one event are one message, and a quote in a comment hides nothing.
    assert is_exceeded(f': "{end}data: {half}{end}data: {half}{end}{end}'.encode(), 4096, is_stream=True)
    assert is_exceeded(event * 3, 4096)
