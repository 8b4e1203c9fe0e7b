"""Limits of server tools in a response: calls and rounds together, calls side by side, bytes of results in prompts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from django.test import override_settings

from responses_app.access import api_keys
from responses_app.engines.replay.engine import Recording
from responses_app.models import ApiKey, Response
from responses_app.protocol.deltas import Delta, McpResult
from responses_app.protocol.output_problems import MESSAGES
from tests.support.api.case import record_text
from tests.support.runs.server_tools import (
    LIMIT_S,
    ROME,
    START,
    TOOL,
    TWO_CALLS,
    CityTools,
    RoundsCase,
    answer,
    call,
    prompt_text,
    shows,
)
from tests.support.waiting import run_ready_tasks

ONE_CALL = call("demo__look", "Rome")
LIMIT_TEXT = "limit of tool calls"
PROBLEM = {"type": "call_limit_reached", "message": MESSAGES["call_limit_reached"]}
RESULT = "x" * 3000


class LongTools(CityTools):
    """The same tool with results of 3000 bytes."""

    async def run(self, call: Mapping[str, Any], report: Callable[[Delta], None]) -> Delta:
        await super().run(call, report)
        return McpResult(output=RESULT)


class CallLimitTest(RoundsCase):
    """Calls beyond the limit: no item shows them, the model is told once, and is offered the tools no more."""

    async def check_two_calls_are_made(self, *lines: Recording, problems: int = 0, **body: Any) -> dict[str, Any]:
        """Run rounds whose last prompt has two results, the note, and no tools of the server."""
        async with self.serving(*lines) as client:
            last: dict[str, Any] = (await self.stream(client, **body))[-1]["response"]
            self.assertEqual([one["status"] for one in self.calls(last)], ["completed", "completed"])
            self.assertEqual((last["status"], self.tools.runs), ("completed", ["Rome", "Rome"]))
            excess = {**PROBLEM, "text": 'demo__look {"city":"Rome"}'}
            problems_found = [{**one, "text": one["text"].replace("Oslo", "Rome")} for one in last.get("output_problems", ())]
            self.assertEqual(problems_found, [excess] * problems)
            prompts = [prompt_text(request.prompt) for request in self.engine.requests]
            self.assertEqual([text.count(LIMIT_TEXT) for text in prompts], [0] * (len(prompts) - 1) + [1])
            self.assertEqual(["type demo__look" in text for text in prompts], [True] * (len(prompts) - 1) + [False])
            return last

    async def test_max_tool_calls_counts_over_all_rounds(self) -> None:
        lines = [record_text(ONE_CALL), record_text(ONE_CALL, match=shows(ROME)), record_text(answer("Enough."))]
        last = await self.check_two_calls_are_made(*lines, max_tool_calls=2)
        self.assertEqual(last["output"][-1]["content"][0]["text"], "Enough.")

    @override_settings(RESPONSES_TOOL_CALLS=2)
    async def test_smaller_limit_holds(self) -> None:
        lines = [record_text(ONE_CALL), record_text(ONE_CALL, match=shows(ROME)), record_text(answer("Enough."))]
        await self.check_two_calls_are_made(*lines, max_tool_calls=100)

    async def test_limit_in_the_middle_of_a_round_leaves_the_later_calls_out(self) -> None:
        lines = [record_text(ONE_CALL), record_text(TWO_CALLS, match=shows(ROME)), record_text(answer("Enough."))]
        last = await self.check_two_calls_are_made(*lines, problems=1, max_tool_calls=2)
        self.assertEqual(last["output_problems"][0]["text"], 'demo__look {"city":"Oslo"}')

    async def test_call_behind_the_note_ends_the_response(self) -> None:
        lines = [record_text(ONE_CALL), record_text(ONE_CALL, match=shows(ROME)), record_text(ONE_CALL)]
        await self.check_two_calls_are_made(*lines, problems=1, max_tool_calls=2)

    @override_settings(RESPONSES_TOOL_ROUNDS=2)
    async def test_behind_the_limit_of_rounds_the_model_answers_without_tools(self) -> None:
        lines = [record_text(ONE_CALL), record_text(ONE_CALL, match=shows(ROME)), record_text(answer("Enough."))]
        last = await self.check_two_calls_are_made(*lines)
        self.assertEqual(last["output"][-1]["content"][0]["text"], "Enough.")

    @override_settings(RESPONSES_TOOL_ROUNDS=2)
    async def test_call_behind_the_limit_of_rounds_ends_the_response(self) -> None:
        lines = [record_text(ONE_CALL), record_text(ONE_CALL, match=shows(ROME)), record_text(ONE_CALL)]
        await self.check_two_calls_are_made(*lines, problems=1)

    async def test_tools_of_the_client_stay_behind_the_limit(self) -> None:
        lines = [record_text(ONE_CALL), record_text(ONE_CALL), record_text(call("get_weather", "Oslo"))]
        last = await self.check_two_calls_are_made(*lines, max_tool_calls=2, tools=[TOOL])
        self.assertEqual((last["output"][-1]["type"], last["output"][-1]["name"]), ("function_call", "get_weather"))


class DailyLimitTest(RoundsCase):
    """Limit of the key on calls of a day."""

    async def test_calls_that_are_left_limit_a_response_and_then_requests_are_refused(self) -> None:
        await ApiKey.objects.filter(pk=self.key.pk).aupdate(tool_calls_per_day=2)
        api_keys.clear_cache()
        enough = record_text(answer("Enough."), match=shows(LIMIT_TEXT))
        rounds = [record_text(ONE_CALL), record_text(answer("Warm.")), record_text(ONE_CALL), enough]
        async with self.serving(*rounds) as client:
            for text in ("Warm.", "Enough."):
                last = (await self.stream(client))[-1]["response"]
                self.assertEqual((len(self.calls(last)), last["output"][-1]["content"][0]["text"]), (1, text))
            refused = await self.post(client)
        self.refused(refused, 429, "insufficient_quota", None, "tool calls per day of this key: Limit 2, Used 2")
        self.assertEqual(await Response.objects.acount(), 2)


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


class LargeNumberTools(CityTools):
    """A tool with a result that no event can have."""

    async def run(self, call: Mapping[str, Any], report: Callable[[Delta], None]) -> Delta:
        await super().run(call, report)
        return McpResult(error={"type": "mcp_tool_execution_error", "content": [{"type": "text", "text": "", "size": 2**70}]})


class LimitedResultTest(RoundsCase):
    async def test_result_that_no_event_can_have_fails_the_call_alone(self) -> None:
        self.tools = LargeNumberTools()
        async with self.serving(
            record_text(ONE_CALL), record_text(answer("It failed."), match=shows("The tool failed"))
        ) as client:
            with self.assertLogs("responses.tools", "ERROR"):
                last = (await self.stream(client))[-1]["response"]
            self.assertEqual((last["status"], self.calls(last)[0]["status"]), ("completed", "failed"))
