"""Rounds with tools that the server runs: on a scripted engine, with a test-only tool, cut at every append."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import orjson
import pytest
from django.test import AsyncClient

from responses_app.engines.replay.engine import Recording, ReplayEngine
from responses_app.models import Direction, Event, Item, Lease, Response
from responses_app.protocol.deltas import Delta, ForItem, McpCall, McpResult
from responses_app.protocol.reducer import fold
from responses_app.runs import manager
from responses_app.runs.execute import rounds
from responses_app.runs.execute.token_log import RoundEnd, RoundStart, unpack
from responses_app.runs.manager import RunManager
from responses_app.runs.models import ServedModel
from tests.support.api.case import ApiCase, KeyedClient, bare, said, tokens

LIMIT_S = 30.0
START = "<|start|>assistant"


def call(function: str, city: str, end: str = "<|call|>") -> str:
    return f'<|channel|>commentary to=functions.{function} <|constrain|>json<|message|>{{"city":"{city}"}}{end}'


def answer(text: str) -> str:
    return f"<|channel|>final<|message|>{text}<|return|>"


THOUGHT = f"<|channel|>analysis<|message|>Two cities.<|end|>{START}"
TWO_CALLS = THOUGHT + call("demo__look", "Rome", "<|end|>") + START + call("demo__look", "Oslo")
MIXED = call("demo__look", "Rome", "<|end|>") + START + call("get_weather", "Oslo")
ROME, OSLO = "It is warm in Rome.", "It is cold in Oslo."
TOOL = {"type": "function", "name": "get_weather", "parameters": {"type": "object", "properties": {}}, "strict": False}


class CityTools:
    """Test-only tool `look` of an MCP server `demo`. `gates` hold calls back by city; `order` notes how often each city was run."""

    def __init__(self) -> None:
        self.gates: dict[str, asyncio.Event] = {}
        self.runs: list[str] = []
        self.cancelled: list[str] = []
        self.error: Exception | None = None
        self.repeatable = True
        self.entered = asyncio.Event()

    @property
    def functions(self) -> Sequence[Mapping[str, Any]]:
        parameters = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
        return [{"type": "function", "name": "demo__look", "description": "Look", "parameters": parameters}]

    def opening(self, function: str) -> Delta | None:
        return McpCall("demo", "look") if function == "demo__look" else None

    def can_run(self, item: Mapping[str, Any]) -> bool:
        return bool(item["type"] == "mcp_call")

    def is_repeatable(self, call: Mapping[str, Any]) -> bool:
        return self.repeatable

    async def run(self, call: Mapping[str, Any], report: Callable[[Delta], None]) -> Delta:
        city = orjson.loads(call["arguments"])["city"]
        self.runs.append(city)
        self.entered.set()
        try:
            if city in self.gates:
                await self.gates[city].wait()
        except asyncio.CancelledError:
            self.cancelled.append(city)
            raise
        if self.error is not None:
            raise self.error
        return McpResult(output={"Rome": ROME, "Oslo": OSLO}[city])

    def failure(self, call: Mapping[str, Any], message: str) -> Delta:
        return McpResult(error={"type": "mcp_protocol_error", "code": -32000, "message": message})


def shows(*texts: str) -> Callable[[Sequence[int]], bool]:
    """Match prompts that contain all of `texts`."""

    def match(prompt: Sequence[int]) -> bool:
        text = prompt_text(prompt)
        return all(one in text for one in texts)

    return match


def prompt_text(prompt: Sequence[int]) -> str:
    return ApiCase.dialect.token_text(list(prompt))


class RoundsCase(ApiCase):
    """A server with the test-only tool."""

    def setUp(self) -> None:
        super().setUp()
        self.tools = CityTools()

    def new_hub(self) -> RunManager:
        return RunManager(
            {"m": ServedModel("m", self.engine, "", {}, dialect=self.dialect)}, tools_for=lambda order: self.tools
        )

    @asynccontextmanager
    async def serving(self, *lines: Recording) -> AsyncIterator[KeyedClient]:
        self.engine.add(*lines)
        self.hub = self.new_hub()
        manager.set_current(self.hub)
        try:
            yield KeyedClient(self.secret)
            await self.engine.close(strict=True)
        finally:
            await self.hub.close()
            manager.set_current(None)

    def calls(self, response: Mapping[str, Any]) -> list[dict[str, Any]]:
        return [item for item in response["output"] if item["type"] == "mcp_call"]


class ToolLoopTest(RoundsCase):
    async def test_two_rounds_with_two_parallel_calls(self) -> None:
        second = said(answer("Warm and cold."), match=shows(ROME, OSLO), cached=7)
        async with self.serving(said(TWO_CALLS, cached=3), second) as client:
            self.tools.gates = {"Rome": asyncio.Event(), "Oslo": asyncio.Event()}
            answered = asyncio.ensure_future(self.post(client, stream=True))
            async with asyncio.timeout(LIMIT_S):
                while len(self.tools.runs) < 2:
                    await asyncio.sleep(0.005)
                # Side by side, and the second result comes first.
                self.tools.gates["Oslo"].set()
                while not any(b"cold" in frame.data for run in self.hub.runs.values() for frame in run.frames):
                    await asyncio.sleep(0.005)
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
        second = said(answer("It failed."), match=shows("The tool failed: ValueError."))
        async with self.serving(said(call("demo__look", "Rome")), second) as client:
            with self.assertLogs("responses.tools", "ERROR"):
                events = await self.stream(client)
            last = events[-1]["response"]
            self.assertEqual((last["status"], self.calls(last)[0]["status"]), ("completed", "failed"))
            self.assertNotIn("secret", str(events))

    async def test_a_call_of_the_client_in_the_same_round_ends_the_response_behind_the_results(self) -> None:
        async with self.serving(said(MIXED)) as client:
            last = (await self.stream(client, tools=[TOOL]))[-1]["response"]
            self.assertEqual(last["status"], "completed")
            self.assertEqual([item["type"] for item in last["output"]], ["mcp_call", "function_call"])
            self.assertEqual(self.calls(last)[0]["output"], ROME)

    async def test_a_call_of_the_client_alone_runs_nothing(self) -> None:
        async with self.serving(said(call("get_weather", "Oslo"))) as client:
            last = (await self.stream(client, tools=[TOOL]))[-1]["response"]
            self.assertEqual((last["status"], self.tools.runs), ("completed", []))

    async def test_the_conversation_goes_on_from_results(self) -> None:
        lines = [said(call("demo__look", "Rome")), said(answer("Warm.")), said(answer("As I said."), match=shows(ROME))]
        async with self.serving(*lines) as client:
            made = await self.made(client)
            again = await self.made(client, previous_response_id=made["id"])
            self.assertEqual(again["output"][0]["content"][0]["text"], "As I said.")

    async def test_the_limit_of_rounds_fails_the_response(self) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(rounds, "MAX_ROUNDS", 2)
            async with self.serving(*[said(call("demo__look", "Rome"))] * 2) as client:
                last = (await self.stream(client))[-1]["response"]
        self.assertEqual((last["status"], last["error"]["code"]), ("failed", "server_error"))
        self.assertIn("called tools in", last["error"]["message"])
        self.assertEqual([one["status"] for one in self.calls(last)], ["completed"] * 2)

    async def test_calls_beyond_max_tool_calls_are_refused(self) -> None:
        second = said(answer("One only."), match=shows(ROME, "limit of tool calls"))
        async with self.serving(said(TWO_CALLS), second) as client:
            last = (await self.stream(client, max_tool_calls=1))[-1]["response"]
            self.assertEqual([one["status"] for one in self.calls(last)], ["completed", "failed"])
            self.assertEqual((last["status"], self.tools.runs), ("completed", ["Rome"]))

    async def test_max_output_tokens_counts_over_all_rounds(self) -> None:
        size, more = len(tokens(call("demo__look", "Rome"))), answer("It is so very warm there.")
        async with self.serving(said(call("demo__look", "Rome")), said(more)) as client:
            last = (await self.stream(client, max_output_tokens=size + 5))[-1]["response"]
            self.assertEqual(self.engine.requests[1].sampling.max_tokens, 5)
        self.assertEqual((last["status"], last["incomplete_details"]), ("incomplete", {"reason": "max_output_tokens"}))
        self.assertEqual(last["usage"]["output_tokens"], size + 5)

    async def test_no_round_without_output_tokens_left(self) -> None:
        size = len(tokens(call("demo__look", "Rome")))
        async with self.serving(said(call("demo__look", "Rome"))) as client:
            last = (await self.stream(client, max_output_tokens=size))[-1]["response"]
        self.assertEqual((last["status"], last["incomplete_details"]), ("incomplete", {"reason": "max_output_tokens"}))
        self.assertEqual(self.calls(last)[0]["output"], ROME)

    async def test_a_forced_call_is_forced_once(self) -> None:
        async with self.serving(said(call("demo__look", "Rome")), said(answer("Warm."))) as client:
            last = (await self.stream(client, tool_choice="required", tools=[TOOL]))[-1]["response"]
            self.assertEqual((last["status"], last["tool_choice"]), ("completed", "required"))
            first, second = self.engine.requests
            assert first.constraint is not None
            assert second.constraint is not None
            # The second one binds only behind the beginning of a call.
            self.assertNotIn("triggered_tags", str(first.constraint.value))
            self.assertIn("triggered_tags", str(second.constraint.value))

    async def test_a_context_that_grows_too_long_fails_the_response(self) -> None:
        async with self.serving(said(call("demo__look", "Rome"))) as client:
            answered = asyncio.ensure_future(self.post(client, stream=True))
            self.tools.gates = {"Rome": asyncio.Event()}
            async with asyncio.timeout(LIMIT_S):
                await self.tools.entered.wait()
                self.engine._max_model_len = 10
                self.tools.gates["Rome"].set()
                last = self.judge(await self.read(await answered))[-1]["response"]
            self.assertEqual(last["status"], "failed")
            self.assertIn("context window", last["error"]["message"])


class StopTest(RoundsCase):
    """Cancel, delete, steer and drain reach a running tool."""

    @asynccontextmanager
    async def at_work(self, **body: Any) -> AsyncIterator[tuple[AsyncClient, str]]:
        """A background response whose tool runs."""
        async with self.serving(said(call("demo__look", "Rome"))) as client:
            self.tools.gates = {"Rome": asyncio.Event()}
            made = await self.made(client, background=True, **body)
            async with asyncio.timeout(LIMIT_S):
                await self.tools.entered.wait()
                yield client, made["id"]

    async def ended(self, uid: str) -> dict[str, Any]:
        events = [orjson.loads(data) async for data in self.data(uid)]
        self.judge(events)
        return dict(events[-1]["response"])

    def data(self, uid: str) -> Any:
        return Event.objects.filter(response__uid=uid).order_by("number").values_list("data", flat=True)

    async def test_cancel(self) -> None:
        async with self.at_work() as (client, uid):
            got = await client.post(f"/v1/responses/{uid}/cancel")
            self.assertEqual(orjson.loads(got.content)["status"], "cancelled")
            self.assertEqual(self.tools.cancelled, ["Rome"])
            last = await self.ended(uid)
            self.assertEqual(self.calls(last)[0]["status"], "incomplete")

    async def test_delete(self) -> None:
        async with self.at_work() as (client, uid):
            got = await client.delete(f"/v1/responses/{uid}")
            self.assertEqual(got.status_code, 200)
            self.assertEqual(self.tools.cancelled, ["Rome"])
            self.assertFalse(await Response.objects.filter(uid=uid).aexists())

    async def test_steer(self) -> None:
        async with self.at_work() as (_, uid):
            run = self.hub.runs[uid]
            self.assertTrue(run.steer())
            await run.wait_terminal()
            self.assertEqual(self.tools.cancelled, ["Rome"])
            last = await self.ended(uid)
            self.assertEqual((last["status"], last["incomplete_details"]), ("incomplete", {"reason": "steered"}))

    async def test_drain_hands_the_call_to_another_process(self) -> None:
        async with self.at_work() as (client, uid):
            await self.hub.drain(0.01)
            self.assertEqual(self.tools.cancelled, ["Rome"])
            await self.hub.close()
            await self.engine.start()
            self.engine.add(said(answer("Warm."), match=shows(ROME)))
            self.tools.gates = {}
            second = self.new_hub()
            manager.set_current(second)
            try:
                await second.start()
                got = await client.get(f"/v1/responses/{uid}?stream=true")
                last = self.judge(await self.read(got))[-1]["response"]
                self.assertEqual((last["status"], self.tools.runs), ("completed", ["Rome", "Rome"]))
            finally:
                await second.close()
                await self.engine.start()


class CutTest(RoundsCase):
    """A run of two rounds is cut behind every append and continued by another manager."""

    def setUp(self) -> None:
        super().setUp()
        first = said(TWO_CALLS, cached=3, match=lambda prompt: ROME not in prompt_text(prompt))
        self.engine = ReplayEngine([first, said(answer("Warm and cold."), cached=7, match=shows(ROME, OSLO))], loop=True)
        # The results come one after the other: Rome first.
        self.tools = InOrder()

    async def whole(self, client: AsyncClient) -> tuple[int, list[dict[str, Any]], list[int], dict[int, list[Any]]]:
        """Run once. Return primary key, events, the numbers behind which an append ended, and the token log by number."""
        uid = (await self.stream(client, temperature=0.0))[-1]["response"]["id"]
        rows = Event.objects.filter(response__uid=uid).order_by("number").values_list("number", "data", "tokens", "response_id")
        events, cuts, entries, pk = [], [1], {}, 0
        async for number, data, blob, response in rows:
            pk = response
            events.append(orjson.loads(data))
            if blob is not None:
                cuts.append(number)
                entries[number] = unpack(bytes(blob))
        return pk, events, cuts[:-1], entries

    async def cut(self, pk: int, number: int, saved: list[Any]) -> None:
        """Take the store back to the moment behind the event `number`, with no owner."""
        await Item.objects.filter(response=pk, direction=Direction.OUTPUT).adelete()
        await Event.objects.filter(response=pk).adelete()
        await Event.objects.abulk_create([one for one in saved if one.number <= number])
        await Lease.objects.filter(pk=pk).adelete()
        await Response.objects.filter(pk=pk).aupdate(status="in_progress", ended_at=None)
        await Lease.objects.acreate(response_id=pk, worker=None, model="m", epoch=1)

    async def continued(self, client: AsyncClient, uid: str) -> list[dict[str, Any]]:
        second = self.new_hub()
        manager.set_current(second)
        try:
            await second.start()
            got = await client.get(f"/v1/responses/{uid}?stream=true")
            async with asyncio.timeout(LIMIT_S):
                return self.judge(bare(await self.read(got)))
        finally:
            await second.close()
            await self.engine.start()

    async def test_every_cut_goes_on_to_the_same_bytes(self) -> None:
        async with self.serving() as client:
            pk, events, cuts, entries = await self.whole(client)
            saved = [one async for one in Event.objects.filter(response=pk).order_by("number")]
            await self.hub.close()
            await self.engine.start()
            kinds = [type(entry) for blob in entries.values() for entry in blob]
            self.assertEqual([kinds.count(kind) for kind in (RoundEnd, ForItem, RoundStart)], [1, 2, 1])
            self.assertGreater(len(cuts), 20)
            different = []
            for number in cuts:
                await self.cut(pk, number, saved)
                got = await self.continued(client, events[0]["response"]["id"])
                if same(got) != same(events) or got[: number + 1] != events[: number + 1]:
                    different.append((number, events[number]["type"]))
            self.assertEqual(different, [])

    async def test_a_begun_call_that_is_not_repeatable_fails_and_the_run_goes_on(self) -> None:
        self.engine = ReplayEngine(
            [said(TWO_CALLS), said(answer("Unknown."), match=shows("the outcome is unknown"))], loop=True
        )
        self.tools.repeatable = False
        async with self.serving() as client:
            self.tools.gates = {"Rome": asyncio.Event()}
            made = await self.made(client, background=True)
            async with asyncio.timeout(LIMIT_S):
                await self.tools.entered.wait()
            await self.hub.drain(0.01)
            await self.hub.close()
            await self.engine.start()
            self.tools.runs.clear()
            last = (await self.continued(client, made["id"]))[-1]["response"]
            self.assertEqual((last["status"], self.tools.runs), ("completed", []))
            self.assertEqual([one["status"] for one in self.calls(last)], ["failed", "failed"])

    async def test_a_call_with_a_stored_result_is_never_run_again(self) -> None:
        async with self.serving() as client:
            pk, events, _, entries = await self.whole(client)
            saved = [one async for one in Event.objects.filter(response=pk).order_by("number")]
            await self.hub.close()
            await self.engine.start()
            results = [number for number, blob in entries.items() if any(isinstance(entry, ForItem) for entry in blob)]
            for number, runs in zip(results, (["Oslo"], []), strict=True):
                self.tools.runs.clear()
                await self.cut(pk, number, saved)
                await self.continued(client, events[0]["response"]["id"])
                self.assertEqual(self.tools.runs, runs)


class InOrder(CityTools):
    """Tools whose results come in a fixed order: Rome before Oslo."""

    def __init__(self) -> None:
        super().__init__()
        self._rome = asyncio.Event()

    async def run(self, call: Mapping[str, Any], report: Callable[[Delta], None]) -> Delta:
        result = await super().run(call, report)
        if "Oslo" in call["arguments"] and self.runs[-2:-1] == ["Rome"]:
            await self._rome.wait()
            self._rome.clear()
        elif "Rome" in call["arguments"]:
            self._rome.set()
        return result


def same(events: Sequence[Mapping[str, Any]]) -> str:
    """The events without what differs from run to run: ids of items, and the time of the end."""
    text = orjson.dumps(events).decode()
    for place, uid in enumerate(dict.fromkeys(event["item"]["id"] for event in events if "item" in event)):
        text = text.replace(uid, f"item{place}")
    now = events[-1]["response"]["completed_at"]
    return text.replace(f'"completed_at":{now}', '"completed_at":0')
