"""Sessions with real MCP servers: all transports, results, limits, failures."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Mapping
from unittest import IsolatedAsyncioTestCase

import orjson
import pytest

from responses_app.tools.limits import ToolLimits
from responses_app.tools.mcp import sessions as sessions_module
from responses_app.tools.mcp.errors import McpError
from responses_app.tools.mcp.servers import McpServer
from responses_app.tools.mcp.sessions import McpOutcome, McpSessions
from tests.support.mcp.serving import STDIO, mcp_server
from tests.support.waiting import LIMIT_S, eventually

pytestmark = pytest.mark.slow

LIMITS = ToolLimits(connect_timeout_s=20, idle_timeout_s=20, call_timeout_s=20, result_bytes=1000)


@pytest.fixture(scope="module")
def urls(mcp_url: str) -> Iterator[Mapping[str, str]]:
    with mcp_server("sse") as sse:
        yield {"http": mcp_url, "sse": sse}


@pytest.mark.usefixtures("class_urls")
class SessionsCase(IsolatedAsyncioTestCase):
    urls: Mapping[str, str]

    @pytest.fixture(autouse=True)
    def class_urls(self, urls: Mapping[str, str]) -> None:
        type(self).urls = urls

    def open(self, *servers: McpServer, limits: ToolLimits = LIMITS) -> McpSessions:
        sessions_module.clear_cache()
        sessions = McpSessions({server.label: server for server in servers}, limits, "project")
        self.addAsyncCleanup(sessions.close)
        return sessions

    def servers(self) -> list[McpServer]:
        return [
            McpServer("http", self.urls["http"], is_operators=True),
            McpServer("sse", self.urls["sse"], is_operators=True),
            McpServer("stdio", command=STDIO, is_operators=True),
        ]

    def http(self, limits: ToolLimits = LIMITS) -> McpSessions:
        return self.open(self.servers()[0], limits=limits)


class TransportTest(SessionsCase):
    async def test_each_transport_lists_and_calls(self) -> None:
        sessions = self.open(*self.servers())
        for label in ("http", "sse", "stdio"):
            with self.subTest(label):
                tools = {tool["name"]: tool for tool in await sessions.list_tools(label)}
                self.assertEqual(tools["add"]["annotations"], {"readOnlyHint": True})
                self.assertNotIn("annotations", tools["delete"])
                self.assertEqual(set(tools["weather"]), {"name", "description", "input_schema", "annotations"})
                self.assertEqual(await sessions.call(label, "add", {"a": 1, "b": 10**21}), McpOutcome(str(10**21 + 1)))

    async def test_calls_of_a_session_run_side_by_side(self) -> None:
        sessions = self.http()
        async with asyncio.TaskGroup() as group:
            calls = [group.create_task(sessions.call("http", "add", {"a": n, "b": 1})) for n in range(20)]
        self.assertEqual([call.result().output for call in calls], [str(n + 1) for n in range(20)])

    async def test_a_program_that_ends_fails_the_call_and_is_started_again(self) -> None:
        sessions = self.open(self.servers()[2])
        with self.assertRaises(McpError):
            await sessions.call("stdio", "die", {})
        self.assertEqual((await sessions.call("stdio", "add", {"a": 1, "b": 2})).output, "3")


class SessionResultTest(SessionsCase):
    async def test_a_tool_that_fails_is_an_error_object(self) -> None:
        outcome = await self.http().call("http", "fail", {"reason": "no paper"})
        assert outcome.error is not None
        self.assertEqual((outcome.output, outcome.error["type"]), (None, "mcp_tool_execution_error"))

    async def test_wrong_arguments_are_an_error_object(self) -> None:
        outcome = await self.http().call("http", "add", {"a": "x"})
        assert outcome.error is not None
        self.assertEqual(outcome.error["type"], "mcp_tool_execution_error")

    async def test_a_picture_stays_a_part(self) -> None:
        output = (await self.http().call("http", "picture", {})).output
        assert output is not None
        self.assertEqual(orjson.loads(output)[0]["mimeType"], "image/png")

    async def test_each_kind_of_part_is_in_the_output(self) -> None:
        everyone = {"audience": ["user", "assistant"], "priority": 1.0}
        text = {"uri": "demo://text", "mimeType": "text/plain", "text": "Buy milk."}
        blob = {"uri": "demo://blob", "mimeType": "application/gzip", "blob": "H4sI"}
        parts: list[tuple[str, dict[str, bool], list[dict[str, object]]]] = [
            ("sound", {}, [{"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"}]),
            ("document", {"binary": False}, [{"type": "resource", "resource": text}]),
            ("document", {"binary": True}, [{"type": "resource", "resource": blob}]),
            ("link", {}, [{"type": "resource_link", "uri": "demo://report", "name": "report", "description": "Sales of May"}]),
            (
                "annotated",
                {},
                [
                    {"type": "text", "text": "Failed", "annotations": everyone},
                    {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png", "annotations": everyone},
                ],
            ),
        ]
        sessions = self.http()
        for name, arguments, expected in parts:
            with self.subTest(name, **arguments):
                output = (await sessions.call("http", name, arguments)).output
                self.assertEqual(orjson.loads(output or ""), expected)

    async def test_text_counts_more_than_a_structured_value(self) -> None:
        self.assertEqual((await self.http().call("http", "both", {})).output, "two")

    async def test_a_structured_value_is_json(self) -> None:
        output = (await self.http().call("http", "structured", {"name": "Ada"})).output
        assert output is not None
        self.assertEqual(orjson.loads(output), {"name": "Ada"})

    async def test_a_long_result_is_cut_with_a_notice(self) -> None:
        output = (await self.http().call("http", "long", {"size": 2_000_000})).output
        self.assertEqual(output, "x" * 1000 + "\n[… 1,999,000 more characters were cut]")


class ProgressTest(SessionsCase):
    async def test_each_notification_is_reported(self) -> None:
        for label in ("http", "sse", "stdio"):
            with self.subTest(label):
                reports: list[None] = []
                sessions = self.open(*self.servers())
                await sessions.call(label, "work", {"steps": 3, "seconds": 0.01}, lambda: reports.append(None))  # noqa: B023
                self.assertEqual(len(reports), 3)

    async def test_a_tool_that_asks_the_user_is_an_error(self) -> None:
        for label in ("http", "sse", "stdio"):
            with self.subTest(label):
                sessions = self.open(*self.servers())
                with self.assertRaisesRegex(McpError, "asks the user for input"):
                    await sessions.call(label, "ask", {"question": "Sure?"})


class LimitTest(SessionsCase):
    async def test_a_silent_call_ends(self) -> None:
        sessions = self.http(ToolLimits(idle_timeout_s=0.3, call_timeout_s=20))
        with self.assertRaisesRegex(McpError, "silent for 0.3 seconds"):
            await sessions.call("http", "work", {"steps": 1, "seconds": 20})

    async def test_progress_begins_the_idle_time_again(self) -> None:
        sessions = self.http(ToolLimits(idle_timeout_s=2, call_timeout_s=20))
        self.assertEqual((await sessions.call("http", "work", {"steps": 6, "seconds": 0.5})).output, "done")

    async def test_a_call_with_progress_ends_at_the_limit_of_the_call(self) -> None:
        sessions = self.http(ToolLimits(idle_timeout_s=10, call_timeout_s=0.5))
        with self.assertRaisesRegex(McpError, "longer than 0.5 seconds"):
            await sessions.call("http", "work", {"steps": 100, "seconds": 0.1})

    async def test_a_cancelled_call_does_not_wait_for_its_tool(self) -> None:
        sessions = self.http()
        call = asyncio.create_task(sessions.call("http", "work", {"steps": 1, "seconds": 10 * LIMIT_S}))
        await eventually(lambda: sessions.is_open("http"))
        call.cancel()
        done, _ = await asyncio.wait([call], timeout=LIMIT_S)
        self.assertEqual(done, {call})
        self.assertTrue(call.cancelled())

    async def test_more_tools_than_allowed_are_refused(self) -> None:
        with self.assertRaisesRegex(McpError, "more than 3 tools"):
            await self.http(ToolLimits(mcp_tools=3)).list_tools("http")


class RefusalTest(SessionsCase):
    async def test_an_internal_address_is_refused(self) -> None:
        sessions = self.open(McpServer("http", self.urls["http"]))
        with self.assertRaisesRegex(McpError, "not on the public internet"):
            await sessions.list_tools("http")

    async def test_a_path_without_mcp_is_an_http_error(self) -> None:
        sessions = self.open(McpServer("http", self.urls["http"] + "/nothing", is_operators=True))
        with self.assertRaises(McpError) as caught:
            await sessions.list_tools("http")
        self.assertEqual((caught.exception.error["type"], caught.exception.error["code"]), ("http_error", 404))

    async def test_a_server_that_answers_nothing_is_given_up(self) -> None:
        async def read_only(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read()
            writer.close()

        silent = await asyncio.start_server(read_only, "127.0.0.1", 0)
        self.addCleanup(silent.close)
        url = f"http://127.0.0.1:{silent.sockets[0].getsockname()[1]}/mcp"
        sessions = self.open(McpServer("silent", url, is_operators=True), limits=ToolLimits(connect_timeout_s=0.3))
        with self.assertRaisesRegex(McpError, "does not answer. The limit is 0.3 seconds"):
            await sessions.list_tools("silent")

    async def test_program_that_answers_nothing_is_given_up_after_the_time_to_start(self) -> None:
        silent = (sys.executable, "-c", "import sys; sys.stdin.read()")
        limits = ToolLimits(connect_timeout_s=60, start_timeout_s=0.3)
        sessions = self.open(McpServer("silent", command=silent, is_operators=True), limits=limits)
        with self.assertRaisesRegex(McpError, "does not answer. The limit is 0.3 seconds"):
            await sessions.list_tools("silent")

    async def test_a_program_that_writes_without_end_is_given_up(self) -> None:
        endless = (sys.executable, "-c", "while True: print('x' * 65536, end='')")
        sessions = self.open(McpServer("endless", command=endless, is_operators=True))
        with self.assertRaisesRegex(McpError, "too long"), self.assertNoLogs("asyncio"):
            await asyncio.wait_for(sessions.list_tools("endless"), LIMIT_S)

    async def test_a_program_that_is_absent_is_an_error(self) -> None:
        sessions = self.open(McpServer("absent", command=("/nothing/here",), is_operators=True))
        with self.assertRaisesRegex(McpError, "cannot be reached"):
            await sessions.list_tools("absent")


class CacheTest(SessionsCase):
    async def test_lists_are_cached_by_credentials_and_project(self) -> None:
        url = self.urls["http"]
        server, other = McpServer("a", url, is_operators=True), McpServer("a", url, headers={"X": "y"}, is_operators=True)
        first = await self.open(server).list_tools("a")
        for project, servers, cached in [("project", server, True), ("project", other, False), ("stranger", server, False)]:
            with self.subTest(project=project, cached=cached):
                sessions = McpSessions({"a": servers}, LIMITS, project)
                self.addAsyncCleanup(sessions.close)
                self.assertEqual(await sessions.list_tools("a"), first)
                self.assertEqual(sessions.is_open("a"), not cached)
