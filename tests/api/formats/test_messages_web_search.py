"""Web search in Messages: domains, the location, the limit of calls, and a stored request that is continued or made again."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import orjson
from django.test import override_settings

from responses_app.models import StoredRequest
from tests.support.api.server_tools_case import ChatTexts
from tests.support.api_formats.messages_case import HI, MessagesCase
from tests.support.runs.server_tools import ConfiguredToolsCase
from tests.support.web_search.pages_folder import MOON, OTHER, SUN, write_pages

SEARCH = {"type": "web_search_20250305", "name": "web_search"}
EXCEEDED = {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"}
BLOCKED_NOTE = "Pages of these domains are not available: tides.example."


def search(query: str) -> str:
    """Return a call of the search."""
    return ChatTexts.call("web_search", query=query)


def answer(text: str) -> str:
    """Return an answer."""
    return ChatTexts.answer(text)


class MessagesWebSearchTest(ChatTexts, MessagesCase, ConfiguredToolsCase):
    """A server with a folder of pages as search service."""

    max_tokens = 400

    def setUp(self) -> None:
        super().setUp()
        folder = write_pages(Path(self.enterContext(tempfile.TemporaryDirectory())))
        self.enterContext(override_settings(RESPONSES_WEB_SEARCH={"backend": "folder", "url": f"folder://{folder}"}))

    def searches(self, made: dict[str, Any]) -> list[Any]:
        """Return the addresses of each result, or the error in place of the results."""
        contents = [block["content"] for block in made["content"] if block["type"] == "web_search_tool_result"]
        return [[one["url"] for one in content] if isinstance(content, list) else content for content in contents]

    async def test_blocked_domains_are_neither_found_nor_opened(self) -> None:
        rounds = [
            self.record(search("tides"), BLOCKED_NOTE),
            self.record(ChatTexts.call("open_page", url=MOON), "【0†tides†elsewhere.example】", hidden=MOON),
            self.record(answer("Elsewhere."), "The request does not allow this page.", hidden="L0: # Tides"),
        ]
        async with self.serving(*rounds) as client:
            made = await self.message(client, tools=[{**SEARCH, "blocked_domains": ["tides.example"]}])
        self.assertEqual(self.searches(made), [[OTHER]])
        self.assertEqual(made["content"][-1]["text"], "Elsewhere.")

    async def test_allowed_domains_and_the_location_reach_the_search(self) -> None:
        location = {"type": "approximate", "city": "Oslo", "region": None, "country": "NO", "timezone": "Europe/Oslo"}
        tool = {**SEARCH, "allowed_domains": ["tides.example"], "blocked_domains": [], "user_location": location}
        note = "The user is near Oslo, NO. Only pages of these domains are available: tides.example."
        rounds = [self.record(search("tides"), note), self.record(answer("Tides."), MOON, hidden=OTHER)]
        async with self.serving(*rounds) as client:
            made = await self.message(client, tools=[tool])
        self.assertEqual(self.searches(made), [[MOON, SUN]])

    async def test_search_beyond_max_uses_is_an_error_that_the_client_can_send_back(self) -> None:
        both = search("moon").removesuffix("<|im_end|>") + "\n" + search("sun")
        rounds = [self.record(both), self.record(answer("The moon."), MOON, "limit of tool calls"), self.record(answer("Yes."))]
        tool = {**SEARCH, "max_uses": 1}
        async with self.serving(*rounds) as client:
            made = await self.message(client, tools=[tool])
            result = made["content"][-1]
            self.assertEqual((made["stop_reason"], self.searches(made)[1:]), ("end_turn", [EXCEEDED]))
            self.assertEqual(made["content"][-2]["input"], {"query": "sun"})
            self.assertEqual(result["tool_use_id"], made["content"][-2]["id"])
            self.assertEqual(made["usage"]["server_tool_use"]["web_search_requests"], 1)
            turns = [*HI, {"role": "assistant", "content": made["content"]}, {"role": "user", "content": "Sure?"}]
            again = await self.message(client, tools=[tool], messages=turns)
        self.assertEqual(again["content"][-1]["text"], "Yes.")

    async def test_choice_of_the_search_forces_a_search(self) -> None:
        rounds = [self.record(search("moon")), self.record(answer("The moon."), MOON)]
        async with self.serving(*rounds) as client:
            made = await self.message(client, tools=[SEARCH], tool_choice={"type": "tool", "name": "web_search"})
        self.assertEqual(len(self.searches(made)), 1)
        self.assertIn(ChatTexts.mark("web_search"), str(self.engine.requests[0].constraint))

    @override_settings(RESPONSES_STORE_API_FORMATS=True)
    async def test_stored_request_keeps_the_blocked_domains(self) -> None:
        rounds = [
            self.record(search("tides")),
            self.record(answer("Elsewhere."), OTHER),
            self.record(search("tides"), BLOCKED_NOTE),
            self.record(answer("Again."), OTHER, hidden=MOON),
        ]
        async with self.serving(*rounds) as client:
            made = await self.message(client, tools=[{**SEARCH, "blocked_domains": ["tides.example"]}])
            uid = made["id"].replace("msg_", "resp_")
            stored = orjson.loads((await client.get(f"/v1/responses/{uid}")).content)
            saved = await StoredRequest.objects.aget(response__uid=uid)
            # The tools of a response are those of a request that makes it again.
            again = await self.made(client, input=HI, tools=stored["tools"])
        self.assertEqual(stored["tools"][0]["filters"], {"blocked_domains": ["tides.example"]})
        self.assertIn('"blocked_domains":["tides.example"]', saved.create_request)
        self.assertEqual(again["output"][-1]["content"][0]["text"], "Again.")

    async def test_errors_name_the_field_of_the_tool(self) -> None:
        both = {"allowed_domains": ["a.example"], "blocked_domains": ["b.example"]}
        cases: list[tuple[dict[str, Any], str]] = [
            (both, "tools[0].blocked_domains"),
            ({"blocked_domains": ["https://a.example"]}, "tools[0].blocked_domains[0]"),
            ({"allowed_domains": ["a"]}, "tools[0].allowed_domains[0]"),
            ({"blocked_domains": "a.example"}, "tools[0].blocked_domains"),
            ({"max_uses": "1"}, "tools[0].max_uses"),
            ({"user_location": {"type": "exact"}}, "tools[0].user_location.type"),
            ({"user_location": {"type": "approximate", "country": "Norway"}}, "tools[0].user_location.country"),
        ]
        async with self.serving() as client:
            for fields, path in cases:
                with self.subTest(path=path, fields=fields):
                    refused = await self.send(client, tools=[{**SEARCH, **fields}])
                    error = orjson.loads(refused.content)
                    self.assertEqual((refused.status_code, error["error"]["type"]), (400, "invalid_request_error"))
                    self.assertIn(path, error["error"]["message"])
