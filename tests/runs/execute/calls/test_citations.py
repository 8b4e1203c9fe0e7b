"""Citations in responses: annotations behind the deltas that complete the links, in the stream, the answer and a continued run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import orjson
import pytest

from responses_app.dialects.citations.sources import DisplaySources, Sources, WebSource
from responses_app.engines.replay.engine import ReplayEngine
from responses_app.protocol.deltas import Delta, SearchStarted, WebResult, WebSearch
from responses_app.protocol.items.server_tools.tool_result import MODEL_OUTPUT
from responses_app.protocol.reducer import fold
from responses_app.runs.manager import RunManager
from responses_app.runs.models import ServedModel
from responses_app.tools.offer import ServerToolOffer
from responses_app.tools.web_search.functions import FUNCTIONS, WEB_SEARCH
from tests.support.api.case import bare, record_text
from tests.support.runs.server_tools import CutCase, answer, prompt_text

TIDES = WebSource("https://moon.example/tides", "Tides")
RESULT = "[0] Tides (https://moon.example/tides)"
SEARCH = '<|channel|>analysis to=browser.search code<|message|>{"query": "tides"}<|call|>'
TEXT = "The moon pulls.【0†L1-L2】 See [tides](https://moon.example/tides) and 【9†L1】`【0†L1】`."
SHOWN = "The moon pulls. ([moon.example](https://moon.example/tides)) See [tides](https://moon.example/tides) and `【0†L1】`."


class SearchTools:
    """Test-only web search. The sources are read from the outputs of earlier calls."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []

    def offer(self, items: Sequence[Mapping[str, Any]]) -> ServerToolOffer:
        is_read = any(MODEL_OUTPUT in item and item[MODEL_OUTPUT].text == RESULT for item in items)
        sources = Sources([TIDES], {0: DisplaySources([(0, TIDES)])}) if is_read else Sources()
        return ServerToolOffer({"web_search"}, {WEB_SEARCH: FUNCTIONS[WEB_SEARCH]}, WebSearch, sources=sources)

    async def prepare(self, items: Sequence[Mapping[str, Any]]) -> None:
        pass

    def openings(self, items: Sequence[Mapping[str, Any]]) -> Sequence[Delta]:
        return ()

    def can_run(self, item: Mapping[str, Any]) -> bool:
        return bool(item["type"] == "web_search_call")

    def counts(self, item: Mapping[str, Any]) -> bool:
        return True

    def is_repeatable(self, call: Mapping[str, Any]) -> bool:
        return True

    async def run(self, call: Mapping[str, Any], report: Callable[[Delta], None]) -> Delta:
        self.calls.append((call["function"], call["arguments"]))
        report(SearchStarted())
        return WebResult({"type": "search", "query": "tides"}, model_text=RESULT)

    def failure(self, call: Mapping[str, Any], message: str) -> Delta:
        return WebResult({"type": "search", "query": ""}, failed=True, model_text=message)

    async def close(self) -> None:
        pass


def citations_of(*links: str) -> list[Mapping[str, Any]]:
    return [TIDES.annotation(SHOWN.index(link), SHOWN.index(link) + len(link)) for link in links]


class CitationTest(CutCase):
    def setUp(self) -> None:
        super().setUp()
        first = record_text(SEARCH, match=lambda prompt: RESULT not in prompt_text(prompt))
        second = record_text(answer(TEXT), match=lambda prompt: RESULT in prompt_text(prompt))
        self.engine = ReplayEngine([first, second], loop=True)
        self.search = SearchTools()

    def new_hub(self) -> RunManager:
        served = ServedModel("m", self.engine, "", {}, dialect=self.dialect)
        return RunManager({"m": served}, tools_for=lambda request, uid: self.search)

    async def test_annotations_follow_their_text_in_the_stream(self) -> None:
        async with self.serving() as client:
            events = self.judge(await self.read(await self.post(client, stream=True)))
        self.assertEqual(self.search.calls, [("web_search", '{"query": "tides"}')])
        last = events[-1]["response"]
        self.assertEqual([item["type"] for item in last["output"]], ["web_search_call", "message"])
        (part,) = last["output"][1]["content"]
        self.assertEqual(part["text"], SHOWN)
        expected = citations_of("([moon.example](https://moon.example/tides))", "[tides](https://moon.example/tides)")
        self.assertEqual(part["annotations"], expected)
        text = ""
        for event in events:
            if event["type"] == "response.output_text.delta":
                text += event["delta"]
            elif event["type"] == "response.output_text.annotation.added":
                self.assertEqual(len(text), event["annotation"]["end_index"])
        self.assertEqual(fold(bare(events)), last)

    async def test_stored_response_and_replay_have_the_annotations(self) -> None:
        async with self.serving() as client:
            events = await self.stream(client)
            made = events[-1]["response"]
            got = orjson.loads((await client.get(f"/v1/responses/{made['id']}")).content)
            self.assertEqual(got["output"], made["output"])
            replayed = await self.read(await client.get(f"/v1/responses/{made['id']}?stream=true"))
            self.assertEqual(bare(replayed), bare(events))

    @pytest.mark.slow
    async def test_every_cut_goes_on_to_the_same_bytes(self) -> None:
        async with self.serving() as client:
            cuts, different, _ = await self.different_cuts(client)
            self.assertGreater(len(cuts), 10)
            self.assertEqual(different, [])

    async def test_later_response_cites_the_sources_of_an_earlier_one(self) -> None:
        async with self.serving() as client:
            made = await self.made(client)
            again = await self.made(client, previous_response_id=made["id"])
            self.assertEqual([item["type"] for item in again["output"]], ["message"])
            self.assertEqual(again["output"][0]["content"][0]["annotations"], made["output"][1]["content"][0]["annotations"])
