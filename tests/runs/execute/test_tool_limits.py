"""Limits of server tools in a response: calls and rounds together, calls side by side, bytes of results in prompts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from django.test import override_settings

from responses_app.protocol.deltas import Delta, McpResult
from tests.support.api.case import record_text
from tests.support.runs.server_tools import LIMIT_S, ROME, START, TWO_CALLS, CityTools, RoundsCase, answer, call, shows
from tests.support.waiting import run_ready_tasks

ONE_CALL = call("demo__look", "Rome")
LIMIT_TEXT = "limit of tool calls"
RESULT = "x" * 3000


class LongTools(CityTools):
    """The same tool with results of 3000 bytes."""

    async def run(self, call: Mapping[str, Any], report: Callable[[Delta], None]) -> Delta:
        await super().run(call, report)
        return McpResult(output=RESULT)


class CallLimitTest(RoundsCase):
    async def check_third_call_is_refused(self, **body: Any) -> None:
        """Run three rounds with a call each; the limit is two calls."""
        lines = [record_text(ONE_CALL), record_text(ONE_CALL, match=shows(ROME)), record_text(ONE_CALL, match=shows(ROME))]
        async with self.serving(*lines, record_text(answer("Enough."), match=shows(LIMIT_TEXT))) as client:
            last = (await self.stream(client, **body))[-1]["response"]
            self.assertEqual([one["status"] for one in self.calls(last)], ["completed", "completed", "failed"])
            self.assertEqual((last["status"], self.tools.runs), ("completed", ["Rome", "Rome"]))
            self.assertIn(LIMIT_TEXT, self.calls(last)[2]["error"]["message"])

    async def test_max_tool_calls_counts_over_all_rounds(self) -> None:
        await self.check_third_call_is_refused(max_tool_calls=2)

    @override_settings(RESPONSES_TOOL_CALLS=2)
    async def test_limit_of_the_server_counts_over_all_rounds(self) -> None:
        await self.check_third_call_is_refused()

    @override_settings(RESPONSES_TOOL_CALLS=2)
    async def test_smaller_limit_holds(self) -> None:
        await self.check_third_call_is_refused(max_tool_calls=100)

    async def test_limit_in_the_middle_of_a_round_refuses_the_later_calls(self) -> None:
        lines = [record_text(ONE_CALL), record_text(TWO_CALLS, match=shows(ROME))]
        async with self.serving(*lines, record_text(answer("Enough."), match=shows(LIMIT_TEXT))) as client:
            last = (await self.stream(client, max_tool_calls=2))[-1]["response"]
            self.assertEqual([one["status"] for one in self.calls(last)], ["completed", "completed", "failed"])
            self.assertEqual(self.tools.runs, ["Rome", "Rome"])


class OtherLimitsTest(RoundsCase):
    @override_settings(RESPONSES_TOOL_PARALLEL_CALLS=2)
    async def test_setting_limits_the_calls_side_by_side(self) -> None:
        five = f"<|end|>{START}".join([call("demo__look", "Rome", "")] * 5) + "<|call|>"
        async with self.serving(record_text(five), record_text(answer("Warm."))) as client:
            self.tools.gates = {"Rome": asyncio.Event()}
            answered = asyncio.ensure_future(self.post(client, stream=True))
            async with asyncio.timeout(LIMIT_S):
                await self.entered(2)
                await run_ready_tasks(20)
                self.assertEqual(len(self.tools.runs), 2)
                self.tools.gates["Rome"].set()
                last = self.judge(await self.read(await answered))[-1]["response"]
            self.assertEqual([one["status"] for one in self.calls(last)], ["completed"] * 5)

    @override_settings(RESPONSES_TOOL_RESULT_PROMPT_BYTES=1000)
    async def test_long_result_is_cut_in_the_prompt_and_whole_in_the_item(self) -> None:
        self.tools = LongTools()
        cut = shows("x" * 1000 + "\n[The output is too long: 2000 more characters were cut.]")
        async with self.serving(record_text(ONE_CALL), record_text(answer("Long."), match=cut)) as client:
            last = (await self.stream(client))[-1]["response"]
            self.assertEqual((last["status"], self.calls(last)[0]["output"]), ("completed", RESULT))
            self.assertFalse(shows("x" * 1001)(self.engine.requests[1].prompt))

    @override_settings(RESPONSES_TOOL_ROUNDS=3)
    async def test_setting_limits_the_rounds(self) -> None:
        async with self.serving(*[record_text(ONE_CALL)] * 3) as client:
            last = (await self.stream(client))[-1]["response"]
            self.assertEqual((last["status"], len(self.calls(last))), ("failed", 3))
            self.assertIn("in 3 rounds", last["error"]["message"])


class LargeNumberTools(CityTools):
    """A tool with a result that no event can have."""

    async def run(self, call: Mapping[str, Any], report: Callable[[Delta], None]) -> Delta:
        await super().run(call, report)
        return McpResult(error={"type": "mcp_tool_execution_error", "content": [{"type": "text", "text": "", "size": 2**70}]})


class ResultTest(RoundsCase):
    async def test_result_that_no_event_can_have_fails_the_call_alone(self) -> None:
        self.tools = LargeNumberTools()
        async with self.serving(
            record_text(ONE_CALL), record_text(answer("It failed."), match=shows("The tool failed"))
        ) as client:
            with self.assertLogs("responses.tools", "ERROR"):
                last = (await self.stream(client))[-1]["response"]
            self.assertEqual((last["status"], self.calls(last)[0]["status"]), ("completed", "failed"))
