"""A run of two rounds, cut behind every append and continued by another manager."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from unittest.mock import patch

import pytest
from asgiref.sync import async_to_sync
from hypothesis import example, given, settings
from hypothesis import strategies as st

from responses_app.engines.replay.engine import Recording, ReplayEngine
from responses_app.models import Event, ToolOutput
from responses_app.protocol.deltas import ForItem
from responses_app.protocol.reducer import fold
from responses_app.store.log.token_log import RoundEnd, RoundStart
from tests.support.api.case import record_text
from tests.support.runs.server_tools import (
    LIMIT_S,
    OSLO,
    ROME,
    START,
    TWO_CALLS,
    CodeTools,
    CutCase,
    HiddenOutputTools,
    InOrder,
    answer,
    call,
    prompt_text,
    same,
    shows,
)

pytestmark = pytest.mark.slow


class CutTest(CutCase):
    min_cuts = 20

    def setUp(self) -> None:
        super().setUp()
        first = record_text(TWO_CALLS, cached=3, match=lambda prompt: ROME not in prompt_text(prompt))
        self.engine = ReplayEngine([first, record_text(answer("Warm and cold."), cached=7, match=shows(ROME, OSLO))], loop=True)
        # The results come one after the other: Rome first.
        self.tools = InOrder()

    async def test_every_cut_goes_on_to_the_same_bytes(self) -> None:
        async with self.serving() as client:
            cuts, different, entries = await self.different_cuts(client)
            kinds = [type(entry) for blob in entries.values() for entry in blob]
            self.assertEqual([kinds.count(kind) for kind in (RoundEnd, ForItem, RoundStart)], [1, 2, 1])
            self.assertGreater(len(cuts), self.min_cuts)
            self.assertEqual(different, [])

    async def test_outputs_for_the_model_alone_are_continued_to_the_same_bytes(self) -> None:
        self.tools = HiddenOutputTools()
        texts = [f"For the model: {city}" for city in ("Rome", "Oslo")]
        first = record_text(TWO_CALLS, match=lambda prompt: texts[0] not in prompt_text(prompt))
        self.engine = ReplayEngine([first, record_text(answer("Warm and cold."), match=shows(*texts))], loop=True)
        async with self.serving() as client:
            cuts, different, _ = await self.different_cuts(client)
            self.assertGreater(len(cuts), self.min_cuts)
            self.assertEqual(different, [])
            self.assertEqual(await ToolOutput.objects.acount(), 2)

    async def test_progress_of_tools_is_continued_to_the_same_bytes_too(self) -> None:
        self.tools = CodeTools()
        async with self.serving() as client:
            cuts, different, entries = await self.different_cuts(client)
            self.assertEqual(sum(isinstance(entry, ForItem) for blob in entries.values() for entry in blob), 4)
            self.assertGreater(len(cuts), self.min_cuts)
            self.assertEqual(different, [])

    async def test_a_begun_call_that_is_not_repeatable_fails_and_the_run_goes_on(self) -> None:
        self.engine = ReplayEngine(
            [record_text(TWO_CALLS), record_text(answer("Unknown."), match=shows("the outcome is unknown"))], loop=True
        )
        self.tools.repeatable = False
        async with self.serving() as client:
            self.tools.gates = {"Rome": asyncio.Event(), "Oslo": asyncio.Event()}
            made = await self.made(client, background=True)
            async with asyncio.timeout(LIMIT_S):
                await self.entered(2)
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


class PipelinedCutTest(CutTest):
    """The same with appends that hold the events of many chunks."""

    uncommitted, min_cuts = 128, 2


@dataclass(frozen=True)
class CutScenario:
    """Cities of the calls of each round, tokens per chunk of each round and of the answer, and places of two cuts.

    `uncommitted` is the number of events from which on the run waits for a commit.
    """

    rounds: list[tuple[list[str], int]]
    answer_chunk: int
    cuts: tuple[int, int]
    uncommitted: int

    def recordings(self) -> list[Recording]:
        """Build a recording per round, found by the number of results in its prompt."""
        recordings, results = [], 0
        for cities, chunk in self.rounds:
            text = f"<|end|>{START}".join(call("demo__look", city, "") for city in cities) + "<|call|>"
            recordings.append(record_text(text, chunk, match=partial(has_results, results)))
            results += len(cities)
        return [*recordings, record_text(answer("Done."), self.answer_chunk, match=partial(has_results, results))]


CALLS = st.lists(st.sampled_from(["Rome", "Oslo", "Nowhere"]), min_size=1, max_size=4)
SCENARIOS = st.builds(
    CutScenario,
    st.lists(st.tuples(CALLS, st.integers(1, 5)), min_size=1, max_size=3),
    st.integers(1, 3),
    st.tuples(st.integers(0, 200), st.integers(0, 200)),
    st.sampled_from([1, 7, 128]),
)


class DrawnRoundsTest(CutCase):
    """Drawn numbers of rounds and parallel calls, some of which fail, each cut at two drawn places."""

    def test_continued_run_has_the_same_bytes(self) -> None:
        logging.getLogger("responses.tools").disabled = True
        self.addCleanup(setattr, logging.getLogger("responses.tools"), "disabled", False)

        @settings(max_examples=7)
        @given(SCENARIOS)
        @example(CutScenario([(["Rome", "Nowhere"], 1), (["Oslo"], 3), (["Rome"] * 4, 5)], 1, (3, 17), 1))
        def check(scenario: CutScenario) -> None:
            async_to_sync(self.check_cuts)(scenario)

        check()

    async def check_cuts(self, scenario: CutScenario) -> None:
        """Run `scenario`, cut its log at both places, and compare the bytes of the continued runs."""
        self.engine = ReplayEngine(scenario.recordings(), loop=True)
        with patch("responses_app.runs.execute.publisher.MAX_UNCOMMITTED_EVENTS", scenario.uncommitted):
            await self.run_and_cut(scenario)

    async def run_and_cut(self, scenario: CutScenario) -> None:
        async with self.serving() as client:
            pk, events, cuts, _ = await self.whole(client)
            last = events[-1]["response"]
            self.assertEqual(last["status"], "completed")
            self.assertEqual(fold(events), last)
            saved = [one async for one in Event.objects.filter(response=pk).order_by("number")]
            await self.hub.close()
            await self.engine.start()
            for place in scenario.cuts:
                number = cuts[place % len(cuts)]
                await self.cut(pk, number, saved)
                self.assertEqual((number, same(await self.continued(client, last["id"]))), (number, same(events)))


def has_results(count: int, prompt: Sequence[int]) -> bool:
    """Return whether a prompt has `count` results of tools."""
    text = prompt_text(prompt)
    return sum(text.count(one) for one in (ROME, OSLO, "The tool failed")) == count
