"""Rounds with tools that the server runs: results, limits, failures, usage."""

from __future__ import annotations

import asyncio

from responses_app.engines.replay.engine import Fault, Recording
from responses_app.protocol.reducer import fold
from tests.support.api.case import bare, record_text, tokens
from tests.support.runs.server_tools import LIMIT_S, MIXED, OSLO, ROME, START, TOOL, TWO_CALLS, RoundsCase, answer, call, shows
from tests.support.waiting import eventually, run_ready_tasks

CUT = {"reason": "max_output_tokens", "limit": "request"}


class ToolLoopTest(RoundsCase):
    async def test_two_rounds_with_two_parallel_calls(self) -> None:
        second = record_text(answer("Warm and cold."), match=shows(ROME, OSLO), cached=7)
        async with self.serving(record_text(TWO_CALLS, cached=3), second) as client:
            self.tools.gates = {"Rome": asyncio.Event(), "Oslo": asyncio.Event()}
            answered = asyncio.ensure_future(self.post(client, stream=True))
            await self.entered(2)
            async with asyncio.timeout(LIMIT_S):
                # Side by side, and the second result comes first.
                self.tools.gates["Oslo"].set()
                await eventually(
                    lambda: any(b"cold" in frame.data for run in self.hub.runs.values() for frame in run.broadcast.frames)
                )
                self.tools.gates["Rome"].set()
                events = self.judge(await self.read(await answered))
            last = events[-1]["response"]
            self.assertEqual(last["status"], "completed", last["error"])
            self.assertEqual([item["type"] for item in last["output"]], ["reasoning", "mcp_call", "mcp_call", "message"])
            self.assertEqual([one["output"] for one in self.calls(last)], [ROME, OSLO])
            done = [one["output_index"] for one in events if one["type"] == "response.output_item.done"]
            self.assertEqual(done, [0, 2, 1, 3], "results in the order in which these come")
            self.assertEqual(fold(bare(events)), last)
            first, then = self.engine.requests
            self.assertEqual((first.id, then.id), (last["id"], f"{last['id']}-r1"))
            usage = last["usage"]
            self.assertEqual(usage["input_tokens"], len(first.prompt) + len(then.prompt))
            self.assertEqual(usage["input_tokens_details"]["cached_tokens"], 10)
            self.assertEqual(usage["output_tokens"], len(tokens(TWO_CALLS)) + len(tokens(answer("Warm and cold."))))
            self.assertGreater(usage["output_tokens_details"]["reasoning_tokens"], 0)
            self.assertEqual(usage["total_tokens"], usage["input_tokens"] + usage["output_tokens"])

    async def test_a_tool_that_raises_is_reported_to_the_model(self) -> None:
        self.tools.error = ValueError("secret")
        second = record_text(answer("It failed."), match=shows("The tool failed: ValueError."))
        async with self.serving(record_text(call("demo__look", "Rome")), second) as client:
            with self.assertLogs("responses.tools", "ERROR"):
                events = await self.stream(client)
            last = events[-1]["response"]
            self.assertEqual((last["status"], self.calls(last)[0]["status"]), ("completed", "failed"))
            self.assertNotIn("secret", str(events))

    async def test_a_call_of_the_client_in_the_same_round_ends_the_response_behind_the_results(self) -> None:
        async with self.serving(record_text(MIXED)) as client:
            last = (await self.stream(client, tools=[TOOL]))[-1]["response"]
            self.assertEqual(last["status"], "completed")
            self.assertEqual([item["type"] for item in last["output"]], ["mcp_call", "function_call"])
            self.assertEqual(self.calls(last)[0]["output"], ROME)

    async def test_a_call_of_the_client_alone_runs_nothing(self) -> None:
        async with self.serving(record_text(call("get_weather", "Oslo"))) as client:
            last = (await self.stream(client, tools=[TOOL]))[-1]["response"]
            self.assertEqual((last["status"], self.tools.runs), ("completed", []))

    async def test_the_conversation_goes_on_from_results(self) -> None:
        lines = [
            record_text(call("demo__look", "Rome")),
            record_text(answer("Warm.")),
            record_text(answer("As I said."), match=shows(ROME)),
        ]
        async with self.serving(*lines) as client:
            made = await self.made(client)
            again = await self.made(client, previous_response_id=made["id"])
            self.assertEqual(again["output"][0]["content"][0]["text"], "As I said.")

    async def test_max_output_tokens_counts_over_all_rounds(self) -> None:
        size, more = len(tokens(call("demo__look", "Rome"))), answer("It is so very warm there.")
        async with self.serving(record_text(call("demo__look", "Rome")), record_text(more)) as client:
            last = (await self.stream(client, max_output_tokens=size + 5))[-1]["response"]
            self.assertEqual(self.engine.requests[1].sampling.max_tokens, 5)
        self.assertEqual((last["status"], last["incomplete_details"]), ("incomplete", {**CUT, "value": size + 5}))
        self.assertEqual(last["usage"]["output_tokens"], size + 5)

    async def test_no_round_without_output_tokens_left(self) -> None:
        size = len(tokens(call("demo__look", "Rome")))
        async with self.serving(record_text(call("demo__look", "Rome"))) as client:
            last = (await self.stream(client, max_output_tokens=size))[-1]["response"]
        self.assertEqual((last["status"], last["incomplete_details"]), ("incomplete", {**CUT, "value": size}))
        self.assertEqual(self.calls(last)[0]["output"], ROME)

    async def test_a_forced_call_is_forced_once(self) -> None:
        async with self.serving(record_text(call("demo__look", "Rome")), record_text(answer("Warm."))) as client:
            last = (await self.stream(client, tool_choice="required", tools=[TOOL]))[-1]["response"]
            self.assertEqual((last["status"], last["tool_choice"]), ("completed", "required"))
            first, second = self.engine.requests
            assert first.constraint is not None
            assert second.constraint is not None
            # The second one binds only behind the beginning of a call.
            self.assertNotIn("triggered_tags", str(first.constraint.value))
            self.assertIn("triggered_tags", str(second.constraint.value))

    async def test_a_context_that_grows_too_long_fails_the_response(self) -> None:
        async with self.serving(record_text(call("demo__look", "Rome"))) as client:
            answered = asyncio.ensure_future(self.post(client, stream=True))
            self.tools.gates = {"Rome": asyncio.Event()}
            async with asyncio.timeout(LIMIT_S):
                await self.tools.entered.wait()
                self.engine._max_model_len = 10
                self.tools.gates["Rome"].set()
                last = self.judge(await self.read(await answered))[-1]["response"]
            self.assertEqual(last["status"], "failed")
            self.assertIn("context window", last["error"]["message"])

    async def test_at_most_eight_calls_run_side_by_side(self) -> None:
        ten = f"<|end|>{START}".join([call("demo__look", "Rome", "")] * 10) + "<|call|>"
        async with self.serving(record_text(ten), record_text(answer("Warm."))) as client:
            self.tools.gates = {"Rome": asyncio.Event()}
            answered = asyncio.ensure_future(self.post(client, stream=True))
            await self.entered(8)
            await run_ready_tasks(20)
            self.assertEqual(len(self.tools.runs), 8)
            self.tools.gates["Rome"].set()
            last = self.judge(await self.read(await answered))[-1]["response"]
            self.assertEqual([one["status"] for one in self.calls(last)], ["completed"] * 10)

    async def test_a_response_that_is_not_stored_has_rounds_too(self) -> None:
        async with self.serving(record_text(call("demo__look", "Rome")), record_text(answer("Warm."))) as client:
            last = (await self.stream(client, store=False))[-1]["response"]
            self.assertEqual([item["type"] for item in last["output"]], ["mcp_call", "message"])

    async def test_a_compaction_follows_the_last_round(self) -> None:
        lines = [
            record_text(call("demo__look", "Rome")),
            record_text(answer("Warm.")),
            record_text(answer("Rome is warm."), match=shows(ROME, "Summarize")),
        ]
        compaction = [{"type": "compaction", "compact_threshold": 1000}]
        async with self.serving(*lines) as client:
            last = (await self.stream(client, context_management=compaction, instructions="Be brief. " * 400))[-1]["response"]
            self.assertEqual([item["type"] for item in last["output"]], ["mcp_call", "message", "compaction"])

    async def test_an_engine_that_fails_in_the_second_round_goes_on_there(self) -> None:
        text = answer("Warm in Rome.")
        dying = Recording([*record_text(text).steps[:4], Fault("down", seconds=0.3)])
        with self.settings(RESPONSES_ENGINE_WAIT=5):
            async with self.serving(record_text(call("demo__look", "Rome")), dying, record_text(text)) as client:
                last = (await self.stream(client))[-1]["response"]
                self.assertEqual(last["output"][-1]["content"][0]["text"], "Warm in Rome.")
                self.assertEqual([one.prior_tokens for one in self.engine.requests], [0, 0, 4])
                self.assertEqual(self.engine.requests[2].id, f"{last['id']}-r1-1-2")
