"""Programs that serve several responses of a project: their reuse, their ends, what belongs to each response."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from responses_app.observability.records import current_response
from responses_app.tools.limits import ToolLimits
from responses_app.tools.mcp import session_pool as module
from responses_app.tools.mcp.errors import McpError
from responses_app.tools.mcp.servers import McpServer
from responses_app.tools.mcp.session import McpSession
from responses_app.tools.mcp.session_pool import IDLE_LIMIT_S, SessionPool, session_pool
from responses_app.tools.mcp.sessions import McpSessions
from tests.support.manual_clock import ManualClock
from tests.support.mcp.raw_program import is_running, raw_program, reply_text
from tests.support.waiting import eventually

LIMITS = ToolLimits(connect_timeout_s=20, idle_timeout_s=20, call_timeout_s=20)
# Answers with its process id. Calls with a `file` create the file and get no answer.
CALL = f"""
        file = message["params"]["arguments"].get("file")
        if file:
            open(file, "w").close()
        else:
            {reply_text("os.getpid()")}"""
SERVER = McpServer("raw", command=raw_program(CALL), is_operators=True)

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


@pytest.fixture(autouse=True)
async def pool() -> AsyncGenerator[SessionPool]:
    """Return the pool of the test's event loop, which is closed at the end."""
    yield session_pool()
    await session_pool().close()


@asynccontextmanager
async def response(
    project: str = "project", server: McpServer = SERVER, limits: ToolLimits = LIMITS
) -> AsyncGenerator[McpSessions]:
    """Yield the sessions of a response, which keeps its programs at the end."""
    sessions = McpSessions({"raw": server}, limits, project)
    try:
        yield sessions
    finally:
        await sessions.close(keep_programs=True)


async def pid_of(sessions: McpSessions) -> int:
    """Return the process id of the program that a call reaches."""
    return int((await sessions.call("raw", "tool", {})).output or "")


async def pid_of_response(project: str = "project", server: McpServer = SERVER) -> int:
    """Return the process id of the program that a call of a new response reaches."""
    async with response(project, server) as sessions:
        return await pid_of(sessions)


async def new_session() -> McpSession:
    """Return an open session with a program of its own."""
    session = McpSession(SERVER, LIMITS)
    await session.open()
    return session


async def test_next_response_of_the_project_uses_the_same_program() -> None:
    pid = await pid_of_response()
    assert [await pid_of_response(), await pid_of_response()] == [pid, pid]


@pytest.mark.parametrize(
    ("project", "server"),
    [
        ("other", SERVER),
        ("project", replace(SERVER, environment={"MODE": "write"})),
        ("project", replace(SERVER, command=(*SERVER.command, "argument"))),
    ],
    ids=["project", "environment", "command"],
)
async def test_program_serves_no_other(project: str, server: McpServer) -> None:
    assert await pid_of_response() != await pid_of_response(project, server)


async def test_responses_at_the_same_time_have_programs_of_their_own() -> None:
    async with response() as first, response() as second:
        pids = {await pid_of(first), await pid_of(second)}
    assert len(pids) == 2
    async with response() as first, response() as second:
        assert {await pid_of(first), await pid_of(second)} == pids


async def test_program_that_ends_while_it_waits_is_replaced(pool: SessionPool) -> None:
    pid = await pid_of_response()
    session = pool.take("project", SERVER)
    assert session is not None
    pool.put("project", session)
    os.kill(pid, signal.SIGKILL)
    await eventually(lambda: not session.is_open)
    assert pool.take("project", SERVER) is None
    assert await pid_of_response() != pid


async def test_program_that_ends_between_two_calls_of_a_response_is_replaced() -> None:
    async with response() as sessions:
        pid = await pid_of(sessions)
        os.kill(pid, signal.SIGKILL)
        await eventually(lambda: not sessions.is_open("raw"))
        assert await pid_of(sessions) != pid


async def test_cancelled_call_ends_the_program(tmp_path: Path) -> None:
    entered = tmp_path / "entered"
    async with response() as sessions:
        pid = await pid_of(sessions)
        call = asyncio.create_task(sessions.call("raw", "tool", {"file": str(entered)}))
        await eventually(entered.exists)
        call.cancel()
        await asyncio.wait([call])
    assert not is_running(pid)


async def test_call_that_takes_too_long_ends_the_program(tmp_path: Path) -> None:
    pid = await pid_of_response()
    async with response(limits=replace(LIMITS, call_timeout_s=0.2)) as sessions:
        with pytest.raises(McpError, match="took longer"):
            await sessions.call("raw", "tool", {"file": str(tmp_path / "entered")})
    assert not is_running(pid)


async def test_closed_sessions_end_their_programs() -> None:
    sessions = McpSessions({"raw": SERVER}, LIMITS, "project")
    pid = await pid_of(sessions)
    await sessions.close()
    assert not is_running(pid)


async def test_program_ends_after_the_time_since_its_last_response() -> None:
    clock, session = ManualClock(), await new_session()
    pool = SessionPool(clock.sleep)
    pool.put("project", session)
    await clock.advance(IDLE_LIMIT_S - 1)
    assert pool.take("project", SERVER) is session
    pool.put("project", session)
    await clock.advance(IDLE_LIMIT_S - 1)
    assert session.is_open
    await clock.advance(1)
    assert not session.is_open
    assert pool.take("project", SERVER) is None
    await pool.close()


async def test_oldest_program_of_the_project_with_the_most_makes_room(
    pool: SessionPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_IDLE", 2)
    quiet, older, newer = [await new_session() for _ in range(3)]
    for project, session in (("quiet", quiet), ("busy", older), ("busy", newer)):
        pool.put(project, session)
    await eventually(lambda: not older.is_open)
    assert (pool.take("quiet", SERVER), pool.take("busy", SERVER)) == (quiet, newer)
    await asyncio.gather(quiet.close(), newer.close())


async def test_close_ends_the_programs(pool: SessionPool) -> None:
    pids = [await pid_of_response(project) for project in ("one", "two")]
    await pool.close()
    assert not any(map(is_running, pids))


async def test_call_has_the_trace_of_its_response() -> None:
    server = replace(
        SERVER, command=raw_program(reply_text("[os.getpid(), message['params'].get('_meta', {}).get('traceparent')]"))
    )
    outputs = []
    for trace in ("00-1-1-01", "00-2-2-01"):
        async with response(server=replace(server, traceparent=trace)) as sessions:
            outputs.append((await sessions.call("raw", "tool", {})).output or "")
    first = outputs[0]
    assert "'00-1-1-01'" in first
    assert outputs[1] == first.replace("00-1-1-01", "00-2-2-01")


async def test_log_names_the_response_of_the_call(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    entered = tmp_path / "entered"
    current_response.set("resp_first")
    pid = await pid_of_response()
    current_response.set("resp_second")
    async with response() as sessions:
        with caplog.at_level("INFO", "responses.tools"):
            call = asyncio.create_task(sessions.call("raw", "tool", {"file": str(entered)}))
            await eventually(entered.exists)
            os.kill(pid, signal.SIGKILL)
            with pytest.raises(McpError):
                await call
    assert [record.getMessage().partition(":")[0] for record in caplog.records] == ["resp_second"]
