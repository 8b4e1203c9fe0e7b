"""MCP servers that are programs: long lines, other output, ends."""

from __future__ import annotations

import asyncio
import resource
import sys
import time
from pathlib import Path

import pytest

from responses_app.engines import orphan_guard
from responses_app.tools.limits import ToolLimits
from responses_app.tools.mcp.errors import BROKEN, STOPPED, TOO_LONG, TOO_MANY_VALUES, McpError
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


def write_answer(ending: str) -> str:
    """Return the code for calls that write an answer of the Python expression `ending` behind the id, as bytes."""
    return f'sys.stdout.buffer.write(b\'{{"jsonrpc":"2.0","id":%d,\' % message["id"] + {ending} + b"\\n"); sys.stdout.flush()'


@pytest.mark.parametrize(
    ("text", "output"), [(r"cut \ud83d", "cut ?"), (r"caf\xe9", "caf\ufffd"), (r"whole \ud83d\ude00", "whole \U0001f600")]
)
async def test_characters_that_are_no_unicode_are_replaced(text: str, output: str) -> None:
    sessions = new_sessions(write_answer(f'b\'"result":{{"content":[{{"type":"text","text":"{text}"}}]}}}}\''))
    try:
        assert (await sessions.call("raw", "tool", {})).output == output
    finally:
        await sessions.close()


@pytest.mark.parametrize(
    "ending",
    [
        """b'"result":null}'""",
        """b'"result":{"content":[],"structuredContent":{"a":' + b"9" * 5000 + b'}}}'""",
        """b'"result":{"content":[],"structuredContent":' + b'{"a":' * 4000 + b'1' + b'}' * 4000 + b'}}'""",
    ],
    ids=["no result", "long integer", "deep value"],
)
async def test_answer_that_cannot_be_parsed_fails_its_call_at_once(ending: str) -> None:
    broken = f"\n        if message['params']['arguments']: {write_answer(ending)}"
    sessions = new_sessions(f"{broken}\n        else: {DONE}")
    try:
        with pytest.raises(McpError, match=BROKEN):
            await sessions.call("raw", "tool", {"broken": True})
        assert (await sessions.call("raw", "tool", {})).output == "done", "the session goes on"
    finally:
        await sessions.close()


@pytest.mark.parametrize("lines", [r"b'\n'", r"b'{x\n'", r"""b'{"jsonrpc":"2.0","id":99999,"result":{}}\n'"""])
async def test_program_that_writes_lines_without_end_leaves_the_event_loop_to_others(lines: str) -> None:
    sessions = new_sessions(f"[os.write(1, {lines} * 100_000) for _ in iter(int, 1)]")
    call = asyncio.create_task(sessions.call("raw", "tool", {}))
    try:
        await eventually(lambda: sessions.is_open("raw"))
        began_s, turns = time.process_time(), 0
        # A second in turns of 10 ms. Without a pace the process would do nothing but read lines.
        async with asyncio.timeout(60):
            while turns < 100:
                await asyncio.wait({call}, timeout=0.01)
                turns += 1
        assert time.process_time() - began_s < 1
    finally:
        call.cancel()
        await asyncio.wait({call})
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
