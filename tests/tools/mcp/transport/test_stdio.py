"""MCP servers that are programs: long lines, other output, ends."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

import pytest

from responses_app.engines import orphan_guard
from responses_app.tools.limits import ToolLimits
from responses_app.tools.mcp.errors import STOPPED, TOO_LONG, TOO_MANY_VALUES, McpError
from responses_app.tools.mcp.servers import McpServer
from responses_app.tools.mcp.sessions import McpSessions
from tests.support.mcp.raw_program import is_running, raw_program, reply_text
from tests.support.waiting import eventually

LIMITS = ToolLimits(connect_timeout_s=20, idle_timeout_s=20, call_timeout_s=20)
DONE = 'reply(message, {"content": [{"type": "text", "text": "done"}]})'
# Bytes by which a line of 1 GB may make the process grow: two full buffers, and some copies.
MAX_GROWTH_BYTES = 100_000_000

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


def new_sessions(call: str) -> McpSessions:
    """Return sessions with a program that runs the code `call` at calls of tools."""
    return McpSessions({"raw": McpServer("raw", command=raw_program(call), is_operators=True)}, LIMITS, "project")


async def test_line_of_a_gigabyte_ends_the_call_and_fills_no_memory() -> None:
    sessions = new_sessions("[sys.stdout.write('x' * 1_000_000) for _ in range(1000)]; sys.stdout.flush()")
    before_bytes = peak_bytes()
    try:
        with pytest.raises(McpError, match=TOO_LONG):
            await sessions.call("raw", "tool", {})
    finally:
        await sessions.close()
    assert peak_bytes() - before_bytes < MAX_GROWTH_BYTES


async def test_line_of_many_values_ends_the_call() -> None:
    sessions = new_sessions('reply(message, {"content": [], "structuredContent": {"a": [{}] * 60_000}})')
    try:
        with pytest.raises(McpError, match=TOO_MANY_VALUES):
            await sessions.call("raw", "tool", {})
    finally:
        await sessions.close()


async def test_line_of_a_gigabyte_before_the_handshake_is_an_error() -> None:
    program = (sys.executable, "-c", "[print('x' * 1_000_000, end='') for _ in range(1000)]")
    sessions = McpSessions({"raw": McpServer("raw", command=program, is_operators=True)}, LIMITS, "project")
    try:
        with pytest.raises(McpError, match=TOO_LONG):
            await sessions.list_tools("raw")
    finally:
        await sessions.close()


async def test_output_that_is_no_message_is_ignored() -> None:
    sessions = new_sessions(f"print('A notice of the program.'); print('{{'); {DONE}")
    try:
        assert (await sessions.call("raw", "tool", {})).output == "done"
    finally:
        await sessions.close()


async def test_program_that_closes_its_output_ends_the_call() -> None:
    sessions = new_sessions("os.close(1); signal.pause()")
    try:
        with pytest.raises(McpError, match=STOPPED):
            await sessions.call("raw", "tool", {})
    finally:
        await sessions.close()


@pytest.mark.parametrize(
    "stubborn", ["", "signal.signal(signal.SIGTERM, signal.SIG_IGN); "], ids=["until SIGTERM", "until SIGKILL"]
)
async def test_program_that_does_not_end_is_ended_with_its_children(tmp_path: Path, stubborn: str) -> None:
    pids = tmp_path / "pids"
    sleep = "signal.pause() if child == 0 else None"
    code = f"{stubborn}child = os.fork(); open({str(pids)!r}, 'a').write(f'{{os.getpid()}} '); {sleep}; {DONE}; signal.pause()"
    sessions = new_sessions(code)
    assert (await sessions.call("raw", "tool", {})).output == "done"
    await eventually(lambda: len(pids.read_text().split()) == 2)
    await sessions.close()
    await eventually(lambda: not any(is_running(int(pid)) for pid in pids.read_text().split()))


async def test_program_has_the_mark_by_which_the_guard_of_a_killed_server_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(orphan_guard.MARK, "mark")
    monkeypatch.setenv("SECRET_OF_OWNER", "secret")
    sessions = new_sessions(reply_text("[os.environ.get(name) for name in ('RESPONSES_OWNER', 'SECRET_OF_OWNER')]"))
    try:
        assert (await sessions.call("raw", "tool", {})).output == "['mark', None]"
    finally:
        await sessions.close()


def peak_bytes() -> int:
    """Return the most memory that this process has used."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
