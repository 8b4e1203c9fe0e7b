"""Work of server tools before the first generation: listings and approved calls."""

from __future__ import annotations

import pytest

from responses_app.engines.replay.engine import ReplayEngine
from responses_app.protocol.reducer import fold
from tests.support.api.case import bare, record_text
from tests.support.runs.server_tools import (
    OSLO,
    ROME,
    TOOL,
    TWO_CALLS,
    CutCase,
    InOrder,
    ListedTools,
    RoundsCase,
    answer,
    call,
    shows,
)

LOOK = call("demo__look", "Rome")
LISTING = [
    "response.output_item.added",
    "response.mcp_list_tools.in_progress",
    "response.mcp_list_tools.completed",
    "response.output_item.done",
]


class PreparationTest(RoundsCase):
    def setUp(self) -> None:
        super().setUp()
        self.listed = ListedTools()
        self.tools = self.listed

    async def test_a_compaction_behind_a_listing_is_no_message(self) -> None:
        async with self.serving(record_text(answer("Ada likes teal."))) as client:
            items = [{"role": "user", "content": "I am Ada."}, {"type": "compaction_trigger"}]
            last = (await self.stream(client, input=items))[-1]["response"]
            self.assertEqual([item["type"] for item in last["output"]], ["mcp_list_tools", "compaction"])

    async def test_a_listing_comes_before_the_first_generation(self) -> None:
        async with self.serving(
            record_text(LOOK, match=shows("look")), record_text(answer("Warm."), match=shows(ROME))
        ) as client:
            events = await self.stream(client)
            last = events[-1]["response"]
            self.assertEqual([one["type"] for one in events[2:6]], LISTING)
            self.assertEqual([item["type"] for item in last["output"]], ["mcp_list_tools", "mcp_call", "message"])
            self.assertEqual(fold(bare(events)), last)
            first, second = self.engine.requests
            self.assertEqual((first.id, second.id), (f"{last['id']}-r1", f"{last['id']}-r2"))
            self.assertEqual(last["usage"]["input_tokens"], len(first.prompt) + len(second.prompt))
            self.assertEqual(self.tools.closed, 1)

    async def test_a_forced_call_is_forced_behind_the_listing(self) -> None:
        async with self.serving(record_text(LOOK), record_text(answer("Warm."))) as client:
            await self.stream(client, tool_choice="required", tools=[TOOL])
            first, second = self.engine.requests
            assert first.constraint is not None
            self.assertNotIn("triggered_tags", str(first.constraint.value))
            assert second.constraint is not None
            self.assertIn("triggered_tags", str(second.constraint.value))

    async def test_the_next_response_of_a_chain_lists_nothing(self) -> None:
        async with self.serving(record_text(answer("Hello.")), record_text(answer("Again."))) as client:
            made = await self.made(client)
            again = await self.made(client, previous_response_id=made["id"])
            self.assertEqual([item["type"] for item in again["output"]], ["message"])

    async def test_a_call_that_needs_an_approval_ends_the_response(self) -> None:
        self.listed.approval = True
        async with self.serving(record_text(TWO_CALLS)) as client:
            events = await self.stream(client)
            last = events[-1]["response"]
            self.assertEqual((last["status"], self.tools.runs), ("completed", []))
            types = [item["type"] for item in last["output"]]
            self.assertEqual(types, ["mcp_list_tools", "reasoning", "mcp_approval_request", "mcp_approval_request"])
            request = last["output"][2]
            self.assertEqual(
                {key: request[key] for key in ("server_label", "name", "arguments")},
                {"server_label": "demo", "name": "look", "arguments": '{"city":"Rome"}'},
            )


@pytest.mark.slow
class PreparationCutTest(CutCase):
    async def test_every_cut_goes_on_to_the_same_bytes(self) -> None:
        rounds = [
            record_text(TWO_CALLS, match=lambda prompt: not shows(OSLO)(prompt)),
            record_text(answer("Warm and cold."), match=shows(ROME, OSLO)),
        ]
        self.engine = ReplayEngine(rounds, loop=True)
        self.tools = _ListedInOrder()
        async with self.serving() as client:
            cuts, different, _ = await self.different_cuts(client)
            self.assertGreater(len(cuts), 20)
            self.assertEqual(different, [])


class _ListedInOrder(ListedTools, InOrder):
    """Listed tools whose results come in a fixed order: Rome before Oslo."""
