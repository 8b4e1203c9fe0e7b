"""Citations in drawn answers: each annotation covers exactly the cited characters, in the stream, the replay and the stored response.

The sources are real: pages that a search and an opening of a page have shown, files of a vector store, and files that code has written.
`CITED_ANSWERS=10` in the environment tries 200 answers of each dialect.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson
import pytest
from asgiref.sync import async_to_sync
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from responses_app.engines.replay.engine import Recording, ReplayEngine
from responses_app.protocol.reducer import fold
from tests.support.api.case import KeyedClient, bare
from tests.support.api.server_tools_case import FOXES, MENU, ChatTexts, HarmonyTexts, ServerToolsCase
from tests.support.runs.cited_answers import ANSWERS, BATCH, BATCHES, PLOT, TABLE, Answer

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800 + 60 * BATCHES)]

CODE = f"for name in ({PLOT!r}, {TABLE!r}): open(name, 'w').write('x')"


class GeneratedCitationCase(ServerToolsCase):
    __test__ = False

    def test_annotations_cover_the_cited_characters(self) -> None:
        # A batch is too slow to be shrunk; the message of a failure has the one answer.
        @settings(max_examples=BATCHES, phases=(Phase.reuse, Phase.generate))
        @given(st.data())
        def check(data: st.DataObject) -> None:
            async_to_sync(self.check_answers)([data.draw(ANSWERS) for _ in range(BATCH)])

        check()

    async def check_answers(self, answers: Sequence[Answer]) -> None:
        """Let the model read the sources in a first response, and write each answer in a response behind the first."""
        self.engine = ReplayEngine()
        async with self.serving(*self.reading()) as client:
            body = {"tools": self.declarations, "include": ["file_search_call.results"]}
            first = (await self.stream(client, **body))[-1]["response"]
            self.assertEqual([item["status"] for item in first["output"]], ["completed"] * 5)
            [search_results] = [item["results"] for item in first["output"] if item["type"] == "file_search_call"]
            self.assertEqual([one["filename"] for one in search_results], [FOXES, MENU])
            for answer in answers:
                self.engine.add(self.record(type(self).answer(answer.written), chunks=answer.chunks))
                await self.check_answer(client, answer, {**body, "previous_response_id": first["id"]})

    def reading(self) -> list[Recording]:
        """Return the rounds of the first response: one call of each function, and a short answer."""
        call = type(self).call
        texts = [
            call("web_search", query="moon tides"),
            call("open_page", id=0),
            call("file_search", queries=["foxes hunt", "menu"]),
            call("python", code=CODE),
            type(self).answer("Ready."),
        ]
        return [self.record(text) for text in texts]

    async def check_answer(self, client: KeyedClient, answer: Answer, body: Mapping[str, Any]) -> None:
        events = bare(await self.stream(client, **body))
        made = events[-1]["response"]
        got = orjson.loads((await client.get(f"/v1/responses/{made['id']}")).content)
        replayed = bare(await self.read(await client.get(f"/v1/responses/{made['id']}?stream=true")))
        self.assertEqual((fold(events), got, replayed), (made, made, events))
        [part] = made["output"][-1]["content"]
        self.assertEqual(part["text"], answer.shown, answer)
        expected = [(one.type, one.source, start, end, one.text) for one, start, end in answer.citations()]
        self.assertEqual([cited(part["text"], one) for one in part["annotations"]], expected, answer)
        self.check_order(events, part["annotations"])

    def check_order(self, events: Sequence[Mapping[str, Any]], annotations: Sequence[Mapping[str, Any]]) -> None:
        """Check that each annotation comes directly behind the delta that completes the cited text."""
        text, added = "", []
        for event in events:
            if event["type"] == "response.output_text.delta":
                text += event["delta"]
            elif event["type"] == "response.output_text.annotation.added":
                one = event["annotation"]
                self.assertEqual(len(text), one["index"] if one["type"] == "file_citation" else one["end_index"])
                added.append(one)
        self.assertEqual(added, annotations)


def cited(text: str, one: Mapping[str, Any]) -> tuple[str, str, int, int, str]:
    """Return type, source, start, end and cited text of an annotation."""
    start = one["index"] if one["type"] == "file_citation" else one["start_index"]
    end = one.get("end_index", start)
    source = one["url"] if one["type"] == "url_citation" else one["filename"]
    if one["type"] == "container_file_citation":
        source = f"/mnt/data/{source}"
    return one["type"], source, start, end, text[start:end]


class HarmonyGeneratedCitationTest(HarmonyTexts, GeneratedCitationCase):
    __test__ = True


class ChatGeneratedCitationTest(ChatTexts, GeneratedCitationCase):
    __test__ = True
