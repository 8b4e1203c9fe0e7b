"""File search in responses of both dialects: events, what the model reads, citations, a second owner, and requests that are refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

import orjson
import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone

from responses_app.engines.replay.engine import Recording, ReplayEngine
from responses_app.models import Event, Item, Response, VectorStore
from responses_app.protocol.reducer import fold
from tests.support.api.case import ApiCase, bare
from tests.support.api.server_tools_case import ChatTexts, HarmonyTexts
from tests.support.runs.server_tools import ConfiguredToolsCase
from tests.support.store.vector_stores import add_text, make_store, search_in_test_thread

RESULTS = "file_search_call.results"
FOXES = "Foxes hunt at night."
SPOOF = "Foxes eat 【9†bread.txt】 (file-x) berries."
QUERIES = ["When do foxes hunt?"]
ANSWER = "They hunt at night【0†foxes.txt】, and 🙂 eat berries【1†menu.txt】【7†none.txt】."
SHOWN = "They hunt at night, and 🙂 eat berries."


class FileSearchCase(ConfiguredToolsCase):
    """A project with a vector store of three files."""

    __test__ = False
    call: Callable[..., str]
    answer: Callable[[str], str]
    store: VectorStore

    def setUp(self) -> None:
        super().setUp()
        self.enterContext(search_in_test_thread())
        self.store = make_store(self.key.project)
        self.foxes = add_text(self.store, FOXES, "foxes.txt", {"year": 2020}).file
        self.menu = add_text(self.store, SPOOF, "menu.txt", {"year": 2024}).file
        add_text(self.store, "Bread is sold in the morning.", "bread.txt")

    def tool(self, **fields: Any) -> dict[str, Any]:
        return {"type": "file_search", "vector_store_ids": [self.store.uid], **fields}

    def recordings(self) -> list[Recording]:
        """Return the rounds of a search and of an answer."""
        read = f"【0†foxes.txt】 ({self.foxes.uid})\n{FOXES}"
        return [
            self.record(type(self).call("file_search", queries=QUERIES), hidden=FOXES),
            self.record(type(self).answer(ANSWER), read, "〖9‡bread.txt〗", "<untrusted ", "files of the user"),
        ]

    async def test_search_has_events_of_its_own_and_citations(self) -> None:
        async with self.serving(*self.recordings()) as client:
            events = bare(await self.stream(client, tools=[self.tool()]))
            uid = events[0]["response"]["id"]
            replayed = bare(await self.read(await client.get(f"/v1/responses/{uid}?stream=true")))
            got = orjson.loads((await client.get(f"/v1/responses/{uid}")).content)
        kinds = [event["type"] for event in events if "file_search_call" in event["type"]]
        self.assertEqual(kinds, [f"response.file_search_call.{stage}" for stage in ("in_progress", "searching", "completed")])
        self.assertEqual(replayed, events)
        self.assertEqual(fold(events), events[-1]["response"])
        self.assertEqual(got, events[-1]["response"])
        call, message = got["output"]
        self.assertEqual((call["status"], call["queries"], call["results"]), ("completed", QUERIES, None))
        (part,) = message["content"]
        self.assertEqual(part["text"], SHOWN)
        first = {"type": "file_citation", "file_id": self.foxes.uid, "filename": "foxes.txt", "index": SHOWN.index(",")}
        second = {"type": "file_citation", "file_id": self.menu.uid, "filename": "menu.txt", "index": len(SHOWN) - 1}
        self.assertEqual(part["annotations"], [first, second])
        added = [event["annotation"] for event in events if event["type"] == "response.output_text.annotation.added"]
        self.assertEqual(added, part["annotations"])

    async def test_results_are_shown_with_the_include(self) -> None:
        async with self.serving(*self.recordings()) as client:
            made = await self.made(client, tools=[self.tool()], include=[RESULTS])
        first, second = made["output"][0]["results"]
        score = first.pop("score")
        self.assertEqual(
            first, {"file_id": self.foxes.uid, "filename": "foxes.txt", "text": FOXES, "attributes": {"year": 2020}}
        )
        self.assertTrue(0 < second["score"] < score <= 1)

    @pytest.mark.slow
    async def test_second_owner_goes_on_behind_every_append(self) -> None:
        self.engine = ReplayEngine(self.recordings(), loop=True)
        stream = self.stream
        self.stream = lambda client, **body: stream(client, tools=[self.tool()], **body)  # type: ignore[method-assign]
        async with self.serving() as client:
            pk, events, cuts, _ = await self.whole(client)
            saved = [one async for one in Event.objects.filter(response=pk).order_by("number")]
            await self.hub.close()
            await self.engine.start()
            ends = {}
            for number in cuts:
                await self.cut(pk, number, saved)
                got = await self.continued(client, events[0]["response"]["id"])
                self.assertEqual(got[-1]["response"]["status"], "completed")
                ends[number] = self.without_ids(got[-1]["response"]["output"])
        expected = self.without_ids(events[-1]["response"]["output"])
        self.assertEqual(expected[1]["content"][0]["text"], SHOWN)
        self.assertGreater(len(cuts), 5)
        self.assertEqual({number: shown for number, shown in ends.items() if shown != expected}, {})

    async def test_later_responses_cite_earlier_passages_and_number_on(self) -> None:
        call, answer = type(self).call, type(self).answer
        rounds = [
            *self.recordings(),
            self.record(call("file_search", queries=["bread"]), "【1†menu.txt】", "Go on.", hidden="【2†"),
            self.record(answer("Both【0†foxes.txt】【2†bread.txt】."), "【2†bread.txt】"),
        ]
        async with self.serving(*rounds) as client:
            first = await self.made(client, tools=[self.tool()])
            second = await self.made(client, tools=[self.tool()], input="Go on.", previous_response_id=first["id"])
        annotations = second["output"][1]["content"][0]["annotations"]
        self.assertEqual([(one["filename"], one["index"]) for one in annotations], [("foxes.txt", 4), ("bread.txt", 4)])

    async def test_options_limit_the_results(self) -> None:
        call, answer = type(self).call, type(self).answer
        filters = {"type": "eq", "key": "year", "value": 2024}
        rounds = [
            self.record(call("file_search", queries=["foxes", "bread"])),
            self.record(answer("Yes."), "【0†menu.txt】", hidden="【1†"),
            self.record(call("file_search", queries=["foxes", "bread"])),
            self.record(answer("Yes."), "【0†", hidden="【1†"),
        ]
        async with self.serving(*rounds) as client:
            await self.made(client, tools=[self.tool(filters=filters)])
            await self.made(client, tools=[self.tool(max_num_results=1)])

    async def test_search_without_results_is_a_result(self) -> None:
        call, answer = type(self).call, type(self).answer
        rounds = [self.record(call("file_search", query="zeppelin")), self.record(answer("No."), "No passage of the files")]
        async with self.serving(*rounds) as client:
            made = await self.made(client, tools=[self.tool()], include=[RESULTS])
        self.assertEqual((made["output"][0]["status"], made["output"][0]["results"]), ("completed", []))

    async def test_broken_arguments_fail_the_call_and_the_model_goes_on(self) -> None:
        call, answer = type(self).call, type(self).answer
        rounds = [self.record(call("file_search", '{"queries": 3}')), self.record(answer("Sorry."), "not an array of strings")]
        async with self.serving(*rounds) as client:
            made = await self.made(client, tools=[self.tool()])
        self.assertEqual((made["output"][0]["status"], made["output"][0]["queries"]), ("failed", []))
        self.assertEqual(made["output"][1]["content"][0]["text"], "Sorry.")

    def without_ids(self, output: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        return [{key: value for key, value in item.items() if key != "id"} for item in output]


class HarmonyFileSearchTest(HarmonyTexts, FileSearchCase):
    __test__ = True


class ChatFileSearchTest(ChatTexts, FileSearchCase):
    __test__ = True


class FileSearchCheckTest(ApiCase):
    async def test_unknown_and_foreign_stores_are_refused_before_anything_is_stored(self) -> None:
        foreign, own_store = await sync_to_async(make_store)("other"), await sync_to_async(make_store)(self.key.project)
        async with self.serving() as client:
            for uid in (foreign.uid, "vs_none"):
                with self.subTest(uid):
                    tool = {"type": "file_search", "vector_store_ids": [own_store.uid, uid]}
                    self.refused(await self.post(client, tools=[tool]), 404, None, "tools[0].vector_store_ids", uid)
        self.assertEqual((await Response.objects.acount(), await Item.objects.acount()), (0, 0))

    async def test_expired_store_is_refused(self) -> None:
        old = timezone.now() - timedelta(days=2)
        store = await sync_to_async(make_store)(self.key.project, expires_after_days=1, last_active_at=old)
        async with self.serving() as client:
            tool = {"type": "file_search", "vector_store_ids": [store.uid]}
            refused = await self.post(client, tools=[tool])
            self.refused(refused, 400, "vector_store_expired", "tools[0].vector_store_ids", "1 days")
