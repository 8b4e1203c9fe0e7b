"""Drawn responses with server tools: fold of the stream, terminal snapshot, GET and replay agree, also behind a cut.

`SCENARIOS=500` in the environment tries 500 scenarios of each dialect.
"""

from __future__ import annotations

import asyncio
import logging
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any

import orjson
import pytest
from asgiref.sync import async_to_sync
from django.test import override_settings
from hypothesis import example, given, settings

from responses_app.dialects.base import Dialect
from responses_app.engines.replay.engine import ReplayEngine
from responses_app.models import Event
from responses_app.protocol.deltas import ForItem
from responses_app.protocol.reducer import fold
from responses_app.runs import manager
from responses_app.runs.execute.calls.problems import UNKNOWN_OUTCOME
from responses_app.runs.manager import RunManager
from responses_app.runs.models import ServedModel
from responses_app.store.log.token_log import RoundEnd, RoundStart, unpack
from tests.support.api.case import HARMONY, KeyedClient, bare, tokens
from tests.support.dialects.parser_driver import byte_vocabulary, chat
from tests.support.runs import tool_scenarios
from tests.support.runs.server_tools import LIMIT_S, CutCase
from tests.support.runs.tool_scenarios import (
    CLIENT_TOOL,
    EXAMPLES,
    MCP_TOOL,
    SCENARIOS,
    DrawnRound,
    Encode,
    Scenario,
    WriteRound,
    answers,
    recordings,
    without_ids,
)
from tests.support.store.stored_events import row_frames

# A timeout inside of a query would leave the connection of all managers unusable, and the runs without an end: the time grows with
# the number of scenarios.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800 + 10 * EXAMPLES)]

KNOWN = [
    Scenario((), approves=True, cut=3),
    Scenario((DrawnRound(("approval", "safe", "client"), thinks=True, speaks=True, chunk=1),), approves=True, cut=9),
    Scenario((DrawnRound(("approval",), thinks=False, speaks=False, chunk=3),) * 2, approves=False, cut=5),
    Scenario((DrawnRound(("unsafe", "bad_json", "unknown"), thinks=True, speaks=False, chunk=1),) * 4, approves=True, cut=25),
    Scenario((DrawnRound(("raises", "wrong_type", "client"), thinks=False, speaks=True, chunk=50),), approves=True, cut=7),
    Scenario((DrawnRound(("safe", "unsafe", "safe"), thinks=True, speaks=True, chunk=1, pauses=True),), approves=True, cut=40),
    Scenario(
        (DrawnRound(("approval", "unsafe", "client"), thinks=False, speaks=False, chunk=3, pauses=True),), approves=True, cut=6
    ),
]


class ScenarioCase(CutCase):
    """Runs drawn scenarios with the MCP server of the tests."""

    __test__ = False
    write: WriteRound
    encode: Encode
    results_within_rounds = 0

    @pytest.fixture(autouse=True)
    def servers(self, mcp_url: str) -> Iterator[None]:
        with override_settings(RESPONSES_MCP_SERVERS={"demo": {"url": mcp_url}}):
            yield

    def new_hub(self) -> RunManager:
        return RunManager({"m": ServedModel("m", self.engine, "", {}, dialect=self.dialect)})

    def test_fold_snapshot_get_and_replay_agree(self) -> None:
        for name in ("responses.tools", "responses.run"):
            logging.getLogger(name).disabled = True
            self.addCleanup(setattr, logging.getLogger(name), "disabled", False)

        @settings(max_examples=EXAMPLES)
        @given(SCENARIOS)
        @example(KNOWN[0])
        @example(KNOWN[1])
        @example(KNOWN[2])
        @example(KNOWN[3])
        @example(KNOWN[4])
        @example(KNOWN[5])
        @example(KNOWN[6])
        def check(scenario: Scenario) -> None:
            async_to_sync(self.check_chain)(scenario)

        check()
        self.assertGreater(self.results_within_rounds, 0)

    async def check_chain(self, scenario: Scenario) -> None:
        """Run the responses of `scenario`, answer their open calls, and cut each at a drawn event."""
        with tempfile.TemporaryDirectory() as folder:
            lines = recordings(scenario, type(self).write, type(self).encode, self.dialect, folder)
            self.engine = ReplayEngine(lines, loop=True)
            await self.replace_hub()
            body: dict[str, Any] = {"input": "Hi"}
            client = KeyedClient(self.secret)
            try:
                for _ in range(len(scenario.rounds) + 1):
                    last = await self.check_response(client, scenario.cut, body)
                    follow_up = answers(last, approve=scenario.approves)
                    if not follow_up:
                        break
                    body = {"input": follow_up, "previous_response_id": last["id"]}
            finally:
                await self.hub.close()
                manager.set_current(None)
            self.assertEqual(last["output"][-1]["content"][0]["text"], tool_scenarios.ANSWER)

    async def replace_hub(self) -> None:
        """Start another manager in place of the current one, which must be closed."""
        self.hub = self.new_hub()
        manager.set_current(self.hub)
        await self.engine.start()
        await self.hub.start()

    async def check_response(self, client: KeyedClient, cut: int, body: dict[str, Any]) -> dict[str, Any]:
        """Run a response, check its projections, and continue it from the event that `cut` chooses. Return the last snapshot."""
        events = await self.first_run(client, body)
        first = events[-1]["response"]
        self.assertEqual(first["status"], "completed", first["error"])
        await self.check_projections(client, events)
        rows = [one async for one in Event.objects.filter(response__uid=first["id"]).order_by("number")]
        self.results_within_rounds += count_results_within_rounds(rows)
        ends = [1, *(row_frames(row)[-1].number for row in rows[1:-1] if row.tokens is not None)]
        number = ends[cut % len(ends)]
        await self.hub.close()
        await self.cut(rows[0].response_id, number, rows)
        await self.replace_hub()
        followed = await client.get(f"/v1/responses/{first['id']}?stream=true")
        async with asyncio.timeout(LIMIT_S):
            events_again = self.judge(bare(await self.read(followed)))
        self.assertEqual(events_again[: number + 1], events[: number + 1])
        again = events_again[-1]["response"]
        self.assertEqual(again["status"], "completed", again["error"])
        await self.check_projections(client, events_again)
        self.check_same_output(first, again)
        return dict(again)

    async def first_run(self, client: KeyedClient, body: dict[str, Any]) -> list[dict[str, Any]]:
        """Run a response to the end and check the usage. Return the events."""
        self.engine.requests.clear()
        events = bare(await self.stream(client, temperature=0.0, tools=[MCP_TOOL, CLIENT_TOOL], **body))
        usage = events[-1]["response"]["usage"]
        self.assertEqual(usage["input_tokens"], sum(len(request.prompt) for request in self.engine.requests))
        self.assertEqual(usage["total_tokens"], usage["input_tokens"] + usage["output_tokens"])
        self.assertGreater(usage["output_tokens"], 0)
        return events

    async def check_projections(self, client: KeyedClient, events: list[dict[str, Any]]) -> None:
        """Check that fold, terminal snapshot, GET and the stored events agree."""
        last = events[-1]["response"]
        self.assertEqual(fold(events), last)
        self.assertEqual(orjson.loads((await client.get(f"/v1/responses/{last['id']}")).content), last)
        replayed = await client.get(f"/v1/responses/{last['id']}?stream=true")
        self.assertEqual(bare(await self.read(replayed)), events)

    def check_same_output(self, first: dict[str, Any], again: dict[str, Any]) -> None:
        """Check that the continued response has the output of the first run, apart from calls whose outcome is unknown."""
        expected, actual_items = without_ids(first["output"]), without_ids(again["output"])
        self.assertEqual(len(actual_items), len(expected))
        differs = False
        for expected_item, item in zip(expected, actual_items, strict=True):
            if item != expected_item:
                differs = True
                self.assertEqual((item["type"], item["error"]["message"]), ("mcp_call", UNKNOWN_OUTCOME), (expected_item, item))
        if not differs:
            self.assertEqual(again["usage"], first["usage"])


def count_results_within_rounds(rows: Sequence[Event]) -> int:
    """Return the number of results and failures that stand in the token log before the end of their round."""
    count = before_end = 0
    for entry in (entry for row in rows if row.tokens is not None for entry in unpack(bytes(row.tokens))):
        if isinstance(entry, RoundEnd):
            count, before_end = count + before_end, 0
        elif isinstance(entry, RoundStart):
            before_end = 0
        else:
            before_end += isinstance(entry, ForItem)
    return count


class HarmonyScenarioTest(ScenarioCase):
    """Scenarios of a gpt-oss model."""

    __test__ = True
    dialect: Dialect = HARMONY
    write = staticmethod(tool_scenarios.harmony_text)
    encode = staticmethod(tokens)


class ChatScenarioTest(ScenarioCase):
    """Scenarios of a chat model with Hermes calls."""

    __test__ = True
    dialect: Dialect = chat()
    write = staticmethod(tool_scenarios.chat_text)
    encode = staticmethod(byte_vocabulary().encode)
