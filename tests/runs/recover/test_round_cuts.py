"""A run of two rounds, cut behind every append and continued by another manager."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from functools import partial
from random import Random

from responses_app.engines.replay.engine import Recording, ReplayEngine
from responses_app.models import Event
from responses_app.protocol.deltas import ForItem
from responses_app.protocol.reducer import fold
from responses_app.runs.execute.token_log import RoundEnd, RoundStart
from tests.support.api.case import said
from tests.support.runs.server_tools import (
    LIMIT_S,
    OSLO,
    ROME,
    START,
    TWO_CALLS,
    CodeTools,
    CutCase,
    InOrder,
    answer,
    call,
    prompt_text,
    same,
    shows,
)


class CutTest(CutCase):
    def setUp(self) -> None:
        super().setUp()
        first = said(TWO_CALLS, cached=3, match=lambda prompt: ROME not in prompt_text(prompt))
        self.engine = ReplayEngine([first, said(answer("Warm and cold."), cached=7, match=shows(ROME, OSLO))], loop=True)
        # The results come one after the other: Rome first.
        self.tools = InOrder()

    async def test_every_cut_goes_on_to_the_same_bytes(self) -> None:
        async with self.serving() as client:
            cuts, different, entries = await self.different_cuts(client)
            kinds = [type(entry) for blob in entries.values() for entry in blob]
            self.assertEqual([kinds.count(kind) for kind in (RoundEnd, ForItem, RoundStart)], [1, 2, 1])
            self.assertGreater(len(cuts), 20)
            self.assertEqual(different, [])

    async def test_progress_of_tools_is_continued_to_the_same_bytes_too(self) -> None:
        self.tools = CodeTools()
        async with self.serving() as client:
            cuts, different, entries = await self.different_cuts(client)
            self.assertEqual(sum(isinstance(entry, ForItem) for blob in entries.values() for entry in blob), 4)
            self.assertGreater(len(cuts), 20)
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


class RandomRoundsTest(CutCase):
    """Random numbers of rounds and parallel calls, some of which fail, each cut at two random places."""

    def recordings(self, chance: Random) -> list[Recording]:
        """One recording per round, found by the number of results in its prompt."""
        lines, results = [], 0
        for _ in range(chance.randint(1, 3)):
            cities = [chance.choice(["Rome", "Oslo", "Nowhere"]) for _ in range(chance.randint(1, 4))]
            text = f"<|end|>{START}".join(call("demo__look", city, "") for city in cities) + "<|call|>"
            lines.append(said(text, chance.randint(1, 5), match=partial(has_results, results)))
            results += len(cities)
        return [*lines, said(answer("Done."), chance.randint(1, 3), match=partial(has_results, results))]

    async def test_every_scenario_is_one_story(self) -> None:
        logging.getLogger("responses.tools").disabled = True
        self.addCleanup(setattr, logging.getLogger("responses.tools"), "disabled", False)
        for seed in range(8):
            chance = Random(seed)
            self.engine = ReplayEngine(self.recordings(chance), loop=True)
            async with self.serving() as client:
                pk, events, cuts, _ = await self.whole(client)
                last = events[-1]["response"]
                self.assertEqual((seed, last["status"]), (seed, "completed"))
                self.assertEqual(fold(events), last)
                saved = [one async for one in Event.objects.filter(response=pk).order_by("number")]
                await self.hub.close()
                await self.engine.start()
                for number in chance.sample(cuts, 2):
                    await self.cut(pk, number, saved)
                    got = await self.continued(client, last["id"])
                    self.assertEqual((seed, number, same(got)), (seed, number, same(events)))


def has_results(count: int, prompt: Sequence[int]) -> bool:
    """Return whether a prompt has `count` results of tools."""
    text = prompt_text(prompt)
    return sum(text.count(one) for one in (ROME, OSLO, "The tool failed")) == count
