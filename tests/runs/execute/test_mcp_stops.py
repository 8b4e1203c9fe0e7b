"""Cancel, delete, drain and disconnect while a tool of a real MCP server runs: the tool is cancelled, nothing stays open."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson
import psutil
import pytest
from django.test import AsyncClient, override_settings

from responses_app.models import Response
from responses_app.runs.execute.run import Run
from tests.support.api.case import ApiCase, record_text
from tests.support.mcp.raw_program import raw_program
from tests.support.runs.server_tools import LIMIT_S, RoundsCase
from tests.support.waiting import eventually

pytestmark = pytest.mark.slow

# A program with the tool `hold` of the server of the tests.
HOLDING = raw_program(
    'folder = message["params"]["arguments"]["folder"]; open(folder + "/entered", "w").close()',
    tools=repr([{"name": "hold", "inputSchema": {"type": "object"}}]),
    cancelled='open(folder + "/cancelled", "w").close()',
)

Stop = Callable[["McpStopCase", AsyncClient, Run], Awaitable[object]]


async def cancel(case: McpStopCase, client: AsyncClient, run: Run) -> None:
    answer = await client.post(f"/v1/responses/{run.uid}/cancel")
    case.assertEqual(orjson.loads(answer.content)["status"], "cancelled")


async def delete(case: McpStopCase, client: AsyncClient, run: Run) -> None:
    answer = await client.delete(f"/v1/responses/{run.uid}")
    case.assertEqual(answer.status_code, 200)
    case.assertFalse(await Response.objects.filter(uid=run.uid).aexists())


async def drain(case: McpStopCase, client: AsyncClient, run: Run) -> None:
    await case.hub.drain(0.01)
    case.assertTrue(run.broadcast.handed_over)


async def disconnect(case: McpStopCase, client: AsyncClient, run: Run) -> None:
    case.hub.client_disconnected(run)
    await run.wait_terminal()
    case.assertEqual(run.writer.response["status"], "cancelled")


class McpStopCase(RoundsCase):
    """A response whose MCP call waits for ever."""

    __test__ = False
    servers: Mapping[str, Any]

    new_hub = ApiCase.new_hub

    async def check(self, stop: Stop) -> None:
        """Stop a response while its tool runs; check the tool, the sessions, the tasks and the processes."""
        with tempfile.TemporaryDirectory() as name, override_settings(RESPONSES_MCP_SERVERS=self.servers):
            folder = Path(name)
            text = f'<|channel|>commentary to=functions.demo__hold <|constrain|>json<|message|>{{"folder":"{name}"}}<|call|>'
            async with self.serving(record_text(text)) as client:
                tool = {"type": "mcp", "server_label": "demo", "require_approval": "never"}
                made = await self.made(client, background=True, tools=[tool])
                await eventually((folder / "entered").exists, limit_s=LIMIT_S)
                # The tool itself would never end.
                await stop(self, client, self.hub.runs[made["id"]])
                await eventually((folder / "cancelled").exists, limit_s=LIMIT_S)
                await eventually(lambda: not _open_sessions() and not _programs(), limit_s=LIMIT_S)

    async def test_cancel(self) -> None:
        await self.check(cancel)

    async def test_delete(self) -> None:
        await self.check(delete)

    async def test_drain(self) -> None:
        await self.check(drain)

    async def test_disconnect(self) -> None:
        await self.check(disconnect)


class HttpStopTest(McpStopCase):
    """Stops of calls over HTTP."""

    __test__ = True

    @pytest.fixture(autouse=True)
    def class_servers(self, mcp_url: str) -> None:
        type(self).servers = {"demo": {"url": mcp_url}}


class ProgramStopTest(McpStopCase):
    """Stops of calls to a program of the operator."""

    __test__ = True
    servers: Mapping[str, Any] = {"demo": {"command": list(HOLDING)}}


def _open_sessions() -> list[str]:
    """Return the names of the tasks that own MCP sessions."""
    return [task.get_name() for task in asyncio.all_tasks() if task.get_name().startswith("mcp ")]


def _programs() -> list[psutil.Process]:
    """Return the MCP servers among the children of this process that use standard input and output."""
    programs = []
    for child in psutil.Process().children(recursive=True):
        # A child of another test may end meanwhile, or have ended without being waited for.
        with suppress(psutil.NoSuchProcess):
            if child.cmdline()[-1:] == [HOLDING[-1]]:
                programs.append(child)
    return programs
