"""Test-only tools that the server runs, and test cases of runs with several rounds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from itertools import cycle
from typing import Any
from unittest.mock import patch

import orjson
from django.test import AsyncClient

from responses_app.engine_interface import Chunk, GenerateRequest
from responses_app.engines.replay.engine import Recording, ReplayEngine, Tokens
from responses_app.models import Direction, Event, Item, Lease, Response, ToolOutput
from responses_app.protocol.deltas import (
    Arguments,
    CodeCall,
    CodeResult,
    CodeStarted,
    Delta,
    EndItem,
    McpApprovalRequest,
    McpCall,
    McpList,
    McpResult,
    McpTools,
)
from responses_app.runs import manager
from responses_app.runs.manager import RunManager
from responses_app.runs.models import ServedModel
from responses_app.store.log.token_log import unpack
from tests.support.api.case import ApiCase, bare
from tests.support.store.stored_events import row_frames
from tests.support.waiting import eventually

LIMIT_S = 120.0
# End of the id of a request of the second round.
NEXT_ROUND = "-r1"
START = "<|start|>assistant"


def call(function: str, city: str, end: str = "<|call|>") -> str:
    return f'<|channel|>commentary to=functions.{function} <|constrain|>json<|message|>{{"city":"{city}"}}{end}'


def answer(text: str) -> str:
    return f"<|channel|>final<|message|>{text}<|return|>"


THOUGHT = f"<|channel|>analysis<|message|>Two cities.<|end|>{START}"
TWO_CALLS = THOUGHT + call("demo__look", "Rome", "<|end|>") + START + call("demo__look", "Oslo")
MIXED = call("demo__look", "Rome", "<|end|>") + START + call("get_weather", "Oslo")
# One pixel.
PICTURE = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"
ROME, OSLO = "It is warm in Rome.", "It is cold in Oslo."
TOOL = {"type": "function", "name": "get_weather", "parameters": {"type": "object", "properties": {}}, "strict": False}


class CityTools:
    """Test-only tool `look` of an MCP server `demo`, with the offer of the tool.

    `gates` hold calls back by city; `runs` and `cancelled` record the cities.
    """

    def __init__(self) -> None:
        self.gates: dict[str, asyncio.Event] = {}
        self.runs: list[str] = []
        self.cancelled: list[str] = []
        self.error: Exception | None = None
        self.repeatable = True
        self.entered = asyncio.Event()
        self.closed = 0

    @property
    def functions(self) -> Sequence[Mapping[str, Any]]:
        parameters = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
        return [{"type": "function", "name": "demo__look", "description": "Look", "parameters": parameters}]

    def opening(self, function: str) -> Delta | None:
        return McpCall("demo", "look") if function == "demo__look" else None

    def tool_choice(self, choice: str | Mapping[str, Any]) -> str | Mapping[str, Any]:
        return choice

    async def prepare(self, items: Sequence[Mapping[str, Any]]) -> None:
        """Do nothing."""

    def offer(self, items: Sequence[Mapping[str, Any]]) -> CityTools:
        return self

    def openings(self, items: Sequence[Mapping[str, Any]]) -> Sequence[Delta]:
        return ()

    async def close(self) -> None:
        self.closed += 1

    def can_run(self, item: Mapping[str, Any]) -> bool:
        return bool(item["type"] == "mcp_call")

    def counts(self, item: Mapping[str, Any]) -> bool:
        return True

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


class ListedTools(CityTools):
    """The same tool, offered only behind a listing. With `approval` each call needs an approval."""

    def __init__(self) -> None:
        super().__init__()
        self.approval = False
        self._is_listed = False

    @property
    def functions(self) -> Sequence[Mapping[str, Any]]:
        return super().functions if self._is_listed else []

    async def prepare(self, items: Sequence[Mapping[str, Any]]) -> None:
        """Do nothing."""

    def offer(self, items: Sequence[Mapping[str, Any]]) -> CityTools:
        self._is_listed = any(item["type"] == "mcp_list_tools" for item in items)
        return self

    def openings(self, items: Sequence[Mapping[str, Any]]) -> Sequence[Delta]:
        deltas: list[Delta] = [] if any(item["type"] == "mcp_list_tools" for item in items) else [McpList("demo")]
        for item in items:
            if item["type"] == "mcp_approval_request" and any(one.get("approve") for one in items):
                deltas += [McpCall("demo", "look", item["id"]), Arguments(item["arguments"]), EndItem()]
        return deltas

    def opening(self, function: str) -> Delta | None:
        if function == "demo__look" and self.approval:
            return McpApprovalRequest("demo", "look", "")
        return super().opening(function)

    def can_run(self, item: Mapping[str, Any]) -> bool:
        return item["type"] in ("mcp_call", "mcp_list_tools")

    def counts(self, item: Mapping[str, Any]) -> bool:
        return bool(item["type"] == "mcp_call")

    async def run(self, call: Mapping[str, Any], report: Callable[[Delta], None]) -> Delta:
        if call["type"] == "mcp_list_tools":
            return McpTools([{"name": "look", "input_schema": {"type": "object", "properties": {}}}])
        return await super().run(call, report)


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


class CodeTools(InOrder):
    """The same tool as runs of code, which report that they have started."""

    def opening(self, function: str) -> Delta | None:
        return CodeCall("cntr_1") if function == "demo__look" else None

    def can_run(self, item: Mapping[str, Any]) -> bool:
        return bool(item["type"] == "code_interpreter_call")

    async def run(self, call: Mapping[str, Any], report: Callable[[Delta], None]) -> Delta:
        report(CodeStarted())
        result = await super().run({**call, "arguments": call["code"]}, report)
        assert isinstance(result, McpResult)
        return CodeResult([{"type": "logs", "logs": result.output}])

    def failure(self, call: Mapping[str, Any], message: str) -> Delta:
        return CodeResult([{"type": "logs", "logs": message}], failed=True)


class HiddenOutputTools(CodeTools):
    """Runs of code whose items show less than the model reads: with the include only the logs, and a text and a picture for the model."""

    async def run(self, call: Mapping[str, Any], report: Callable[[Delta], None]) -> Delta:
        result = await super().run(call, report)
        assert isinstance(result, CodeResult)
        city = orjson.loads(call["code"])["city"]
        return replace(result, model_text=hidden_text(city), model_images=[PICTURE])


def hidden_text(city: str) -> str:
    """The text that only the model reads."""
    return f"For the model: {city}\0."


def shows(*texts: str) -> Callable[[Sequence[int]], bool]:
    """Match prompts that contain all of `texts`."""

    def match(prompt: Sequence[int]) -> bool:
        text = prompt_text(prompt)
        return all(one in text for one in texts)

    return match


def prompt_text(prompt: Sequence[int]) -> str:
    return ApiCase.dialect.token_text(list(prompt))


class GatedEngine(ReplayEngine):
    """Replay engine that generates `open_tokens` tokens of the first request, sets `reached`, and continues when `gate` is set."""

    def __init__(self, open_tokens: int) -> None:
        super().__init__()
        self.open_tokens = open_tokens
        self.gate, self.reached = asyncio.Event(), asyncio.Event()

    async def generate(self, request: GenerateRequest) -> AsyncGenerator[Chunk, None]:
        count = request.prior_tokens
        async with aclosing(super().generate(request)) as chunks:
            async for chunk in chunks:
                count += len(chunk.tokens)
                if count > self.open_tokens and not request.id.endswith(NEXT_ROUND):
                    self.reached.set()
                    await self.gate.wait()
                yield chunk


class RoundsCase(ApiCase):
    """A server with the test-only tool."""

    def setUp(self) -> None:
        super().setUp()
        self.tools = CityTools()

    def new_hub(self) -> RunManager:
        return RunManager(
            {"m": ServedModel("m", self.engine, "", {}, dialect=self.dialect)}, tools_for=lambda request, uid: self.tools
        )

    async def entered(self, count: int) -> None:
        """Wait until `count` calls have entered the tool."""
        await eventually(lambda: len(self.tools.runs) >= count)

    def calls(self, response: Mapping[str, Any]) -> list[dict[str, Any]]:
        return [item for item in response["output"] if item["type"] == "mcp_call"]


class CutCase(RoundsCase):
    """Take the store back to an earlier moment, and let another manager continue.

    Unless `uncommitted` is higher, a run waits for the commit of each chunk, so that there are many cuts.
    """

    uncommitted = 1

    def setUp(self) -> None:
        super().setUp()
        limit = patch("responses_app.runs.execute.publisher.MAX_UNCOMMITTED_EVENTS", self.uncommitted)
        limit.start()
        self.addCleanup(limit.stop)

    async def whole(self, client: AsyncClient) -> tuple[int, list[dict[str, Any]], list[int], dict[int, list[Any]]]:
        """Run once. Return primary key, events, the numbers behind which an append ended, and the token log by number."""
        uid = (await self.stream(client, temperature=0.0))[-1]["response"]["id"]
        events, cuts, entries, pk = [], [1], {}, 0
        async for row in Event.objects.filter(response__uid=uid).order_by("number"):
            pk = row.response_id
            frames = row_frames(row)
            events += [orjson.loads(frame.data) for frame in frames]
            if row.tokens is not None:
                cuts.append(frames[-1].number)
                entries[frames[-1].number] = unpack(bytes(row.tokens))
        return pk, events, cuts[:-1], entries

    async def cut(self, pk: int, number: int, saved: list[Any]) -> None:
        """Take the store back to the moment behind the event `number`, with no owner."""
        await Item.objects.filter(response=pk, direction=Direction.OUTPUT).adelete()
        await Event.objects.filter(response=pk).adelete()
        before = [one for one in saved if one.number <= number]
        await Event.objects.abulk_create(before)
        done = [frame for one in before for frame in row_frames(one) if frame.type == "response.output_item.done"]
        closed = [orjson.loads(frame.data)["item"]["id"] for frame in done]
        await ToolOutput.objects.filter(response=pk).exclude(item_uid__in=closed).adelete()
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

    async def different_cuts(self, client: AsyncClient) -> tuple[list[Any], list[tuple[int, str]], dict[int, list[Any]]]:
        """Run once, then continue behind each append. Return the cuts, those whose continuation differs, and the token log."""
        pk, events, cuts, entries = await self.whole(client)
        saved = [one async for one in Event.objects.filter(response=pk).order_by("number")]
        await self.hub.close()
        await self.engine.start()
        different = []
        for number in cuts:
            await self.cut(pk, number, saved)
            got = await self.continued(client, events[0]["response"]["id"])
            if same(got) != same(events) or got[: number + 1] != events[: number + 1]:
                different.append((number, events[number]["type"]))
        return cuts, different, entries


class ConfiguredToolsCase(CutCase):
    """The same with the configured tools, and with recordings in the tokens that `encode` makes."""

    new_hub = ApiCase.new_hub
    encode: Callable[[str], Sequence[int]]

    def record(self, text: str, *shown: str, hidden: str = "\0", chunks: Sequence[int] = (4,)) -> Recording:
        """Return a recording of `text` in chunks of so many tokens, in turn.

        The prompt must contain the texts `shown`, and must not contain `hidden`.
        """

        def match(prompt: Sequence[int]) -> bool:
            prompt_text = self.dialect.token_text(list(prompt))
            return all(one in prompt_text for one in shown) and hidden not in prompt_text

        ids, parts, sizes = list(type(self).encode(text)), [], cycle(chunks)
        while ids:
            size = next(sizes)
            parts.append(Tokens(ids[:size]))
            del ids[:size]
        return Recording(parts, match=match)


def same(events: Sequence[Mapping[str, Any]]) -> str:
    """Return the events without ids of items and the time of the end, which differ between runs."""
    text = orjson.dumps(events).decode()
    for place, uid in enumerate(dict.fromkeys(event["item"]["id"] for event in events if "item" in event)):
        text = text.replace(uid, f"item{place}")
    now = events[-1]["response"]["completed_at"]
    return text.replace(f'"completed_at":{now}', '"completed_at":0')
