"""Web search in responses of both dialects: events, what the model reads, replay, a second owner, and requests that are refused."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest
from django.test import override_settings

from responses_app.engines.replay.engine import Recording, ReplayEngine
from responses_app.models import Event
from responses_app.protocol.reducer import fold
from tests.support.api.case import ApiCase, bare, record_text
from tests.support.api.server_tools_case import ChatTexts, HarmonyTexts
from tests.support.runs.server_tools import ConfiguredToolsCase
from tests.support.web_search.pages_folder import MOON, OTHER, SUN, write_pages

QUERY = "moon tides"
ANSWER = f"The moon causes tides ([Tides]({MOON}))."
SOURCES = "web_search_call.action.sources"
WEB = {"type": "web_search"}
US = {"type": "approximate", "city": None, "country": "US", "region": None, "timezone": None}


class WebSearchCase(ConfiguredToolsCase):
    """A server with a folder of pages as search service."""

    __test__ = False
    call: Callable[..., str]
    answer: Callable[[str], str]
    # Citations in a form that only this dialect has: as written, as shown, and address, title and text of each.
    markers = shown_markers = ""
    marked: Sequence[tuple[str, str, str]] = ()

    def setUp(self) -> None:
        super().setUp()
        folder = write_pages(Path(self.enterContext(tempfile.TemporaryDirectory())))
        setting = {"backend": "folder", "url": f"folder://{folder}"}
        self.enterContext(override_settings(RESPONSES_WEB_SEARCH=setting))

    def recordings(self) -> list[Recording]:
        """Return the rounds of a search, an opened page, a text found in the page, and an answer."""
        call, answer = type(self).call, type(self).answer
        return [
            self.record(call("web_search", query=QUERY), hidden="【0†"),
            self.record(call("open_page", id=0), "【0†Tides and the moon†", hidden="L0: # Tides"),
            self.record(call("find_in_page", pattern="line 7 "), "【1000†the sun】", "<untrusted ", hidden="# Match at L20"),
            self.record(answer(ANSWER + type(self).markers), "# Match at L20"),
        ]

    async def test_search_open_and_find_have_events_of_their_own(self) -> None:
        async with self.serving(*self.recordings()) as client:
            events = bare(await self.stream(client, tools=[WEB]))
            uid = events[0]["response"]["id"]
            replayed = bare(await self.read(await client.get(f"/v1/responses/{uid}?stream=true")))
            got = orjson.loads((await client.get(f"/v1/responses/{uid}")).content)
        kinds = [event["type"] for event in events if "web_search_call" in event["type"]]
        self.assertEqual(
            kinds, [f"response.web_search_call.{stage}" for stage in ("in_progress", "searching", "completed")] * 3
        )
        self.assertEqual(replayed, events)
        self.assertEqual(fold(events), events[-1]["response"])
        self.assertEqual(got, events[-1]["response"])
        *calls, message = got["output"]
        self.assertEqual(
            [(item["type"], item["status"], item["action"]) for item in calls],
            [
                ("web_search_call", "completed", {"type": "search", "query": QUERY, "queries": [QUERY]}),
                ("web_search_call", "completed", {"type": "open_page", "url": MOON}),
                ("web_search_call", "completed", {"type": "find_in_page", "url": MOON, "pattern": "line 7"}),
            ],
        )
        self.assertEqual(message["content"][0]["text"], ANSWER + type(self).shown_markers)
        self.assertEqual(got["tool_usage"]["web_search"], {"num_requests": 1})

    async def test_citations_are_annotations_behind_their_link(self) -> None:
        async with self.serving(*self.recordings()) as client:
            events = bare(await self.stream(client, tools=[WEB]))
        (part,) = events[-1]["response"]["output"][-1]["content"]
        shown = [(one["url"], one["title"], part["text"][one["start_index"] : one["end_index"]]) for one in part["annotations"]]
        self.assertEqual(shown, [(MOON, "Tides and the moon", f"[Tides]({MOON})"), *type(self).marked])
        text = ""
        for event in events:
            text += event["delta"] if event["type"] == "response.output_text.delta" else ""
            if event["type"] == "response.output_text.annotation.added":
                self.assertEqual(len(text), event["annotation"]["end_index"])

    @pytest.mark.slow
    async def test_second_owner_goes_on_behind_every_append(self) -> None:
        self.engine = ReplayEngine(self.recordings(), loop=True)
        async with self.serving() as client:
            pk, events, cuts, _ = await self.whole_with_tools(client)
            saved = await self.saved_events(pk)
            await self.hub.close()
            await self.engine.start()
            ends = {}
            for number in cuts:
                await self.cut(pk, number, saved)
                got = await self.continued(client, events[0]["response"]["id"])
                ends[number] = [self.shown(item) for item in got[-1]["response"]["output"]]
        expected = [self.shown(item) for item in events[-1]["response"]["output"]]
        self.assertGreater(len(cuts), 10)
        self.assertEqual({number: shown for number, shown in ends.items() if shown != expected}, {})

    async def test_sources_are_shown_with_the_include(self) -> None:
        call, answer = type(self).call, type(self).answer
        rounds = [self.record(call("web_search", query=QUERY), hidden="【0†"), self.record(answer("Yes."), "【0†")]
        async with self.serving(*rounds) as client:
            made = await self.made(client, tools=[WEB], include=[SOURCES])
        urls = [{"type": "url", "url": url} for url in (MOON, OTHER, SUN)]
        self.assertEqual(made["output"][0]["action"], {"type": "search", "query": QUERY, "queries": [QUERY], "sources": urls})

    async def test_later_response_can_open_a_result_of_an_earlier_one(self) -> None:
        call, answer = type(self).call, type(self).answer
        rounds = [
            self.record(call("web_search", query=QUERY), hidden="【0†"),
            self.record(answer("Yes."), "【0†", hidden="Go on."),
            self.record(call("open_page", id=2), "【0†", "Go on.", hidden="[1] Sun"),
            self.record(answer("Done."), "The sun raises spring tides.", "[1] Sun"),
        ]
        async with self.serving(*rounds) as client:
            first = await self.made(client, tools=[WEB])
            second = await self.made(client, tools=[WEB], input="Go on.", previous_response_id=first["id"])
        self.assertEqual(second["output"][0]["action"], {"type": "open_page", "url": SUN})

    async def test_broken_arguments_fail_the_call_and_the_model_goes_on(self) -> None:
        call, answer = type(self).call, type(self).answer
        rounds = [
            self.record(call("web_search", '{"query": 3}'), hidden="must be a text"),
            self.record(answer("Sorry."), "must be a text"),
        ]
        async with self.serving(*rounds) as client:
            made = await self.made(client, tools=[WEB])
        item, message = made["output"]
        self.assertEqual((item["status"], item["action"]["type"]), ("failed", "search"))
        self.assertEqual(message["content"][0]["text"], "Sorry.")
        self.assertEqual(made["tool_usage"]["web_search"], {"num_requests": 0})

    async def test_domains_that_are_not_allowed_are_not_found(self) -> None:
        call, answer = type(self).call, type(self).answer
        rounds = [
            self.record(call("web_search", query=QUERY), hidden="【0†"),
            self.record(answer("Yes."), "【0†tides†elsewhere.example】", hidden=MOON),
        ]
        tool = {"type": "web_search", "filters": {"allowed_domains": ["elsewhere.example"]}}
        async with self.serving(*rounds) as client:
            made = await self.made(client, tools=[tool])
        self.assertEqual(made["status"], "completed")

    async def whole_with_tools(self, client: Any) -> Any:
        stream = self.stream
        self.stream = lambda client, **body: stream(client, tools=[WEB], **body)  # type: ignore[method-assign]
        return await self.whole(client)

    async def saved_events(self, pk: int) -> list[Any]:
        return [one async for one in Event.objects.filter(response=pk).order_by("number")]

    def shown(self, item: Mapping[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in item.items() if key != "id"}


class HarmonyWebSearchTest(HarmonyTexts, WebSearchCase):
    __test__ = True
    # Line 99 belongs to the last result. There is no display 9.
    markers = " The sun helps.【0†L99】【9†L1】"
    shown_markers = f" The sun helps. ([tides.example]({SUN}))"
    marked = ((SUN, "Sun", f"([tides.example]({SUN}))"),)


class ChatWebSearchTest(ChatTexts, WebSearchCase):
    __test__ = True


class DeclarationTest(ApiCase):
    async def test_tool_without_a_search_service_names_the_setting(self) -> None:
        async with self.serving() as client:
            for kind in ("web_search", "web_search_preview", "web_search_2025_08_26", "web_search_preview_2025_03_11"):
                with self.subTest(kind):
                    refused = await self.post(client, tools=[{"type": kind}])
                    self.refused(refused, 400, "invalid_value", "tools[0].type", "has not configured RESPONSES_WEB_SEARCH")

    @override_settings(RESPONSES_WEB_SEARCH={"backend": "searxng", "url": "http://127.0.0.1:9"})
    async def test_tool_is_repeated_with_its_defaults(self) -> None:
        options = {"search_content_types": ["text"], "search_context_size": "medium", "user_location": US}
        async with self.serving(record_text("<|channel|>final<|message|>Hi<|return|>")) as client:
            made = await self.made(client, tools=[WEB])
        self.assertEqual(made["tools"], [{**WEB, **options, "filters": None, "return_token_budget": "default"}])
