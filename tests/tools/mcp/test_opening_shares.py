"""Shares of projects in the opening of sessions with MCP servers."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from responses_app.tools.limits import ToolLimits
from responses_app.tools.mcp import sessions as sessions_module
from responses_app.tools.mcp.servers import McpServer
from responses_app.tools.mcp.sessions import McpSessions
from tests.support.mcp.raw_server import RawMcpServer, raw_mcp_server, reply
from tests.support.waiting import eventually

LIMITS = ToolLimits(connect_timeout_s=60, idle_timeout_s=60, call_timeout_s=60)


@asynccontextmanager
async def servers() -> AsyncGenerator[tuple[RawMcpServer, RawMcpServer], None]:
    """Yield a server that answers nothing, and one that answers at once."""
    async with raw_mcp_server(reply(result={})) as silent, raw_mcp_server(reply(result={})) as quick:
        silent.silent = {"server/discover", "initialize"}
        yield silent, quick


@asynccontextmanager
async def listing(project: str, server: RawMcpServer) -> AsyncGenerator[asyncio.Task[int], None]:
    """Begin to list the tools of a server for a project. Yield the task, which returns the number of tools."""
    sessions = McpSessions({"raw": McpServer("raw", server.url(), is_operators=True)}, LIMITS, project)

    async def count() -> int:
        return len(await sessions.list_tools("raw"))

    task = asyncio.ensure_future(count())
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await sessions.close()


def test_opening_of_a_project_waits_for_its_place_while_others_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions_module, "OPENING_S", 60.0)

    async def main() -> None:
        async with servers() as (silent, quick), listing("busy", silent) as first:
            await eventually(lambda: silent.messages)
            async with listing("busy", quick) as second:
                async with listing("quiet", quick) as other:
                    assert await other == 1
                assert (quick.methods.count("initialize"), second.done()) == (1, False)
                first.cancel()
                assert await second == 1

    asyncio.run(main())


def test_slow_server_delays_the_next_opening_for_a_moment_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions_module, "OPENING_S", 0.01)

    async def main() -> None:
        async with servers() as (silent, quick), listing("busy", silent) as first:
            await eventually(lambda: silent.messages)
            async with listing("busy", quick) as second:
                assert await second == 1
            assert not first.done()

    asyncio.run(main())


@pytest.mark.slow
def test_client_library_is_imported_outside_of_the_event_loop() -> None:
    code = (
        "import os; os.environ['DJANGO_SETTINGS_MODULE'] = 'project.settings'; import asyncio, sys, threading, django;"
        "from responses_app.tools.mcp import sessions; django.setup(); assert 'mcp' not in sys.modules;"
        "threads = []; sys.meta_path.insert(0, type('F', (), {'find_spec': lambda self, name, *_:"
        " threads.append(threading.current_thread()) if name == 'mcp' else None})());"
        "asyncio.run(sessions.import_session_type()); print(threads[0] is threading.main_thread())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "False"
