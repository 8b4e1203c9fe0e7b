"""Calls that run while the model still writes: begin marks, results, limits, failures, stops and take-over."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import orjson
import pytest
from django.test import AsyncClient, override_settings

from responses_app.models import Event, Response
from responses_app.protocol.deltas import ForItem
from responses_app.protocol.reducer import fold
from responses_app.runs.execute.run import Run
from responses_app.store.log.token_log import CallStart, RoundEnd, unpack
from tests.support.api.case import bare, record_text, tokens
from tests.support.runs.server_tools import (
    LIMIT_S,
    OSLO,
    ROME,
    START,
    THOUGHT,
    TWO_CALLS,
    CutCase,
    GatedEngine,
    answer,
    call,
    shows,
)
from tests.support.store.stored_events import read_stored_events
from tests.support.waiting import eventually, run_ready_tasks

FIRST_CALL: Final = THOUGHT + call("demo__look", "Rome", "<|end|>")
THREE_CALLS: Final = f"<|end|>{START}".join(call("demo__look", city, "") for city in ("Rome", "Oslo", "Rome")) + "<|call|>"
BOTH: Final = record_text(answer("Warm and cold."), match=shows(ROME, OSLO))
ARGUMENTS_DONE: Final = "response.mcp_call_arguments.done"
Stop = Callable[["MiddleCase", AsyncClient, Run], Awaitable[object]]


class MiddleCase(CutCase):
    """Case in which the engine stops behind the first of two calls, until its gate is opened."""

    def setUp(self) -> None:
        super().setUp()
        self.engine: GatedEngine = GatedEngine(len(tokens(FIRST_CALL)))

    @asynccontextmanager
    async def middle(self, text: str = TWO_CALLS, *more: Any, **body: Any) -> AsyncIterator[tuple[AsyncClient, Run]]:
        """A background response: its first call runs, and the engine has not written the second call."""
        async with self.serving(record_text(text), *more) as client:
            self.tools.gates = {"Rome": asyncio.Event()}
            made = await self.made(client, background=True, **body)
            async with asyncio.timeout(LIMIT_S):
                await self.tools.entered.wait()
                await self.engine.reached.wait()
                yield client, self.hub.runs[made["id"]]

    async def ended(self, uid: str) -> list[dict[str, Any]]:
        """Return the events of the response, which has ended."""
        events = self.judge(await read_stored_events(Event.objects.filter(response__uid=uid)))
        self.assertEqual(fold(events), events[-1]["response"])
        return events

    async def entries(self, uid: str) -> list[Any]:
        """Return the entries of the token log."""
        blobs = (
            Event.objects.filter(response__uid=uid, tokens__isnull=False).order_by("number").values_list("tokens", flat=True)
        )
        return [entry async for blob in blobs for entry in unpack(bytes(blob or b""))]


class MiddleTest(MiddleCase):
    async def test_call_runs_and_ends_while_the_model_writes_the_next_call(self) -> None:
        async with self.middle(TWO_CALLS, BOTH) as (_, run):
            self.tools.gates["Rome"].set()
            await eventually(lambda: any(ROME.encode() in frame.data for frame in run.broadcast.frames))
            self.assertEqual(self.tools.runs, ["Rome"])
            self.engine.gate.set()
            await run.wait_terminal()
            events = bare(await self.ended(run.uid))
            last = events[-1]["response"]
            self.assertEqual([one["output"] for one in self.calls(last)], [ROME, OSLO])
            kinds = [(one["type"], one.get("output_index")) for one in events]
            self.assertLess(kinds.index(("response.output_item.done", 1)), kinds.index(("response.output_item.added", 2)))

    async def test_begin_mark_is_in_the_log_before_the_tool_is_entered(self) -> None:
        async with self.middle(TWO_CALLS, BOTH) as (_, run):
            entries = await self.entries(run.uid)
            self.assertEqual(entries[-1], CallStart(1))
            self.assertFalse([entry for entry in entries if isinstance(entry, (RoundEnd, ForItem))])
            self.engine.gate.set()
            self.tools.gates["Rome"].set()
            await run.wait_terminal()
            kinds = [type(entry) for entry in await self.entries(run.uid)]
            self.assertEqual([kinds.count(kind) for kind in (CallStart, RoundEnd, ForItem)], [2, 1, 2])

    async def test_call_beyond_the_limit_is_not_made_while_another_runs(self) -> None:
        refused = record_text(answer("One."), match=shows(ROME, "limit of tool calls"))
        async with self.middle(TWO_CALLS, refused, max_tool_calls=1) as (_, run):
            self.engine.gate.set()
            self.tools.gates["Rome"].set()
            await run.wait_terminal()
            last = (await self.ended(run.uid))[-1]["response"]
            self.assertEqual([one["status"] for one in self.calls(last)], ["completed"])
            self.assertEqual((last["status"], self.tools.runs), ("completed", ["Rome"]))
            self.assertEqual([one["type"] for one in last["output_problems"]], ["call_limit_reached"])

    @override_settings(RESPONSES_ENGINE_WAIT=0)
    async def test_engine_that_fails_while_a_tool_runs_fails_the_response_and_closes_the_call(self) -> None:
        async with self.middle() as (_, run):
            self.engine.fail_for()
            self.engine.gate.set()
            with self.assertLogs("responses.run", "ERROR"):
                await run.wait_terminal()
            last = (await self.ended(run.uid))[-1]["response"]
            self.assertEqual((last["status"], last["error"]["code"]), ("failed", "server_error"))
            self.assertEqual([one["status"] for one in self.calls(last)], ["incomplete"])
            self.assertEqual(self.tools.cancelled, ["Rome"])
            self.engine.recover()

    async def test_end_by_length_waits_for_the_call_that_runs(self) -> None:
        async with self.middle(max_output_tokens=len(tokens(TWO_CALLS)) - 3) as (_, run):
            self.engine.gate.set()
            await eventually(lambda: not self.engine.running)
            await run_ready_tasks(20)
            self.assertFalse(run.broadcast.ended)
            self.tools.gates["Rome"].set()
            await run.wait_terminal()
            last = (await self.ended(run.uid))[-1]["response"]
            self.assertEqual((last["status"], last["incomplete_details"]["limit"]), ("incomplete", "request"))
            self.assertEqual([one["status"] for one in self.calls(last)], ["completed", "incomplete"])
            self.assertEqual(self.tools.runs, ["Rome"])


async def cancel(case: MiddleCase, client: AsyncClient, run: Run) -> None:
    answered = await client.post(f"/v1/responses/{run.uid}/cancel")
    case.assertEqual(orjson.loads(answered.content)["status"], "cancelled")
    last = (await case.ended(run.uid))[-1]["response"]
    case.assertEqual([one["status"] for one in case.calls(last)], ["incomplete"])


async def delete(case: MiddleCase, client: AsyncClient, run: Run) -> None:
    answered = await client.delete(f"/v1/responses/{run.uid}")
    case.assertEqual(answered.status_code, 200)
    case.assertFalse(await Response.objects.filter(uid=run.uid).aexists())


async def drain(case: MiddleCase, client: AsyncClient, run: Run) -> None:
    await case.hub.drain(0.01)
    case.assertTrue(run.broadcast.handed_over)


class StopInTheMiddleTest(MiddleCase):
    async def check_stop(self, stop: Stop) -> None:
        async with self.middle() as (client, run):
            # The tool and the generation would never end.
            async with asyncio.timeout(LIMIT_S):
                await stop(self, client, run)
            self.assertEqual((self.tools.cancelled, self.engine.running), (["Rome"], set()))
            self.assertEqual(len(self.engine.aborted), 1)

    async def test_cancel(self) -> None:
        await self.check_stop(cancel)

    async def test_delete(self) -> None:
        await self.check_stop(delete)

    async def test_drain(self) -> None:
        await self.check_stop(drain)


class TakeOverInTheMiddleTest(MiddleCase):
    @asynccontextmanager
    async def handed_over(
        self, *more: Any, text: str = TWO_CALLS, calls: int = 1, **body: Any
    ) -> AsyncIterator[tuple[AsyncClient, str, int]]:
        """A response that its owner has left behind `calls` complete calls. Yields the client, the id, and the number of the last event."""
        async with self.middle(text, **body) as (client, run):
            await eventually(lambda: sum(frame.type == ARGUMENTS_DONE for frame in run.broadcast.frames) == calls)
            await self.hub.drain(0.01)
            await self.hub.close()
            await self.engine.start()
            self.engine.add(*more)
            self.engine.gate.set()
            self.tools.gates = {}
            self.tools.runs.clear()
            yield client, run.uid, run.broadcast.frames[-1].number

    async def test_generation_is_resumed_and_a_safe_call_runs_again(self) -> None:
        async with self.handed_over(record_text(TWO_CALLS), BOTH, temperature=0.0) as (client, uid, _):
            last = (await self.continued(client, uid))[-1]["response"]
            self.assertEqual((last["status"], sorted(self.tools.runs)), ("completed", ["Oslo", "Rome"]))
            self.assertEqual([one["output"] for one in self.calls(last)], [ROME, OSLO])
            self.assertEqual([one.id for one in self.engine.requests], [uid, f"{uid}-2-1", f"{uid}-r1-2-1"])

    async def test_unsafe_call_fails_and_the_call_that_had_not_begun_runs(self) -> None:
        self.tools.repeatable = False
        unknown = record_text(answer("Unknown and cold."), match=shows("the outcome is unknown", OSLO))
        async with self.handed_over(record_text(TWO_CALLS), unknown, temperature=0.0) as (client, uid, number):
            events = await self.continued(client, uid)
            last = events[-1]["response"]
            self.assertEqual((last["status"], self.tools.runs), ("completed", ["Oslo"]))
            self.assertEqual([one["status"] for one in self.calls(last)], ["failed", "completed"])
            done = next(one for one in events[number + 1 :] if one["type"] == "response.output_item.done")
            self.assertEqual(done["output_index"], 1, "the call is closed before the generation goes on")

    @override_settings(RESPONSES_TOOL_PARALLEL_CALLS=1)
    async def test_call_without_a_slot_has_not_begun(self) -> None:
        self.tools.repeatable = False
        self.engine.open_tokens = len(tokens(THREE_CALLS))
        self.engine.reached.set()
        unknown = record_text(answer("Unknown."), match=shows("the outcome is unknown", OSLO, ROME))
        async with self.handed_over(unknown, text=THREE_CALLS, calls=3, temperature=0.0) as (client, uid, _):
            self.assertEqual([one for one in await self.entries(uid) if isinstance(one, CallStart)], [CallStart(0)])
            last = (await self.continued(client, uid))[-1]["response"]
            self.assertEqual((last["status"], self.tools.runs), ("completed", ["Oslo", "Rome"]))
            self.assertEqual([one["status"] for one in self.calls(last)], ["failed", "completed", "completed"])

    async def test_round_that_cannot_be_resumed_ends_behind_its_complete_call(self) -> None:
        first = record_text(answer("Warm."), match=shows(ROME))
        async with self.handed_over(first, temperature=1.0) as (client, uid, _):
            last = (await self.continued(client, uid))[-1]["response"]
            self.assertEqual((last["status"], self.tools.runs), ("completed", ["Rome"]), last["error"])
            self.assertEqual([item["type"] for item in last["output"]], ["reasoning", "mcp_call", "message"])

    async def test_call_that_is_cut_off_fails_and_its_tool_does_not_run(self) -> None:
        self.engine.open_tokens = len(tokens(TWO_CALLS)) - 3
        cut = record_text(answer("Warm."), match=shows(ROME, "before the arguments were complete"))
        async with self.handed_over(cut, temperature=1.0) as (client, uid, _):
            events = await self.continued(client, uid)
            last = events[-1]["response"]
            self.assertEqual((last["status"], self.tools.runs), ("completed", ["Rome"]), last["error"])
            self.assertEqual([one["status"] for one in self.calls(last)], ["completed", "failed"])
            self.assertEqual(fold(events), last)


pytestmark = pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
