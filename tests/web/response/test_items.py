"""Fragment of an item: the same HTML on the response page, in the chat and at its own address, for each type of item."""

from __future__ import annotations

import json
import re
from typing import Any

import orjson
from django.contrib.auth.models import User

from responses_app.models import Direction, Event, Item, Response
from responses_app.protocol.items.server_tools.tool_result import ModelOutput
from responses_app.store.content import tool_outputs
from responses_app.web.render.item_blocks import ItemBlock
from responses_app.web.response import conversation
from tests.support.web.page_case import WebCase, item, made, snapshot, text_of

TEXT_PART = {"type": "output_text", "text": "**Sunny** [a](/x)", "annotations": []}
CITATION = {"type": "file_citation", "index": 3, "file_id": "file_1", "filename": "rules.txt"}
CITING = {"type": "output_text", "text": "Yes.", "annotations": [CITATION]}
PAGE = {"url": "https://example.org/", "title": "Tides", "snippet": "Sun and moon"}
SEARCH = {"type": "search", "query": "tides", "sources": [PAGE]}
SERVER = {"server_label": "demo", "name": "look", "arguments": '{"a":1}'}
DONE = {"status": "completed"}
TRACEBACK = 'Traceback (most recent call last):\n  File "<cell 1>", line 1, in <module>\n'
OUTPUT: list[dict[str, Any]] = [
    {"type": "message", "role": "assistant", "content": [TEXT_PART], **DONE},
    {"type": "message", "role": "assistant", "content": [CITING], **DONE},
    {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "Hm."}]},
    {"type": "function_call", "call_id": "call_1", "name": "get_weather", "arguments": '{"city":"Paris"}', **DONE},
    {"type": "custom_tool_call", "call_id": "call_2", "name": "sql", "input": "select 1", **DONE},
    {"type": "mcp_list_tools", "server_label": "demo", "tools": [{"name": "look"}]},
    {"type": "mcp_call", **SERVER, "output": "fine", "error": None, **DONE},
    {"type": "mcp_approval_request", **SERVER},
    {"type": "code_interpreter_call", "code": "print(1)", "outputs": [{"type": "logs", "logs": "1"}], **DONE},
    {"type": "web_search_call", "action": SEARCH, **DONE},
    {"type": "file_search_call", "queries": ["days"], "results": [{"filename": "rules.txt", "text": "30 days"}], **DONE},
    {"type": "image_generation_call", "result": "AAAA", **DONE},
    {"type": "compaction", "encrypted_content": "x"},
]
# Input items of a long request.
COUNT = 2 * conversation.MAX_INPUT_ITEMS + 50
# Texts that the fragments show, in order.
SHOWN = (
    "<strong>Sunny</strong>",
    'href="/files/file_1/content"',
    "Hm.",
    "Paris",
    "select 1",
    "demo · 1 tool",
    "fine",
    "Approval for look of demo",
    "print(1)",
    'href="https://example.org/"',
    "30 days",
    "Image generation call",
    "Compaction",
)


def stored() -> tuple[Response, list[dict[str, Any]]]:
    row = made()
    output = [{"id": f"item_{place}", **one} for place, one in enumerate(OUTPUT)]
    snapshot(row, output)
    later = made("resp_2", thread="resp_1", previous_uid="resp_1")
    item(later, "fco_1", "function_call_output", Direction.INPUT, call_id="call_1", output="22 degrees")
    snapshot(later, [])
    return row, output


class FragmentTest(WebCase):
    """Fragments of stored responses."""

    def test_an_item_has_the_same_html_on_each_page(self) -> None:
        _, output = stored()
        page = self.page("/responses/resp_1")
        turn = self.client.get("/chat/resp_2/turns").json()["turns"][0]
        for one, shown in zip(output, SHOWN, strict=True):
            with self.subTest(type=one["type"], id=one["id"]):
                fragment = self.page(f"/responses/resp_1/items/{one['id']}/fragment")
                self.assertIn(shown, fragment)
                self.assertIn(fragment, page)
                self.assertEqual(turn["fragments"][one["id"]], fragment)
        self.assertIn("22 degrees", turn["fragments"]["item_3"])
        # A message of the input is an item too.
        self.assertIn(turn["fragments"]["msg_in_resp_1"], page)

    def test_code_that_raised_is_not_only_done(self) -> None:
        call: dict[str, Any] = {"id": "ci_1", "type": "code_interpreter_call", "code": "x", "outputs": None, **DONE}
        row = made()
        snapshot(row, [call])
        Event.objects.filter(response=row, number=1).update(number=3)
        for number, kind in enumerate(("added", "done"), 1):
            event: dict[str, Any] = {
                "type": f"response.output_item.{kind}",
                "sequence_number": number,
                "output_index": 0,
                "item": call,
            }
            Event.objects.create(response=row, number=number, type=event["type"], data=orjson.dumps(event).decode())
        tool_outputs.insert(row, {"ci_1": ModelOutput(f"{TRACEBACK}NameError: x\nFiles written: /mnt/data/a.csv (3 bytes)")})
        state = '<span class="state status incomplete">Done, the code raised NameError'
        turn = self.client.get("/chat/resp_1/turns").json()["turns"][0]
        self.assertIn(state, turn["fragments"]["ci_1"])
        for path in ("/responses/resp_1", "/responses/resp_1/items/ci_1/fragment", "/responses/resp_1/events/2"):
            with self.subTest(path=path):
                self.assertIn(state, self.page(path))

    def test_outputs_in_the_item_show_that_code_raised(self) -> None:
        logs = [{"type": "logs", "logs": f"{TRACEBACK}NameError: x"}]
        snapshot(made(), [{"id": "ci_1", "type": "code_interpreter_call", "code": "x", "outputs": logs, **DONE}])
        self.assertIn("Done, the code raised NameError", self.page("/responses/resp_1"))

    def test_the_answer_of_a_branch_stands_beside_its_call(self) -> None:
        stored()
        other = made("resp_3", thread="resp_1", previous_uid="resp_1")
        item(other, "fco_2", "function_call_output", Direction.INPUT, call_id="call_1", output="1 degree")
        url = "/responses/resp_1/items/item_3/fragment"
        self.assertIn("22 degrees", self.page(url))
        self.assertIn("1 degree", self.page(f"{url}?answer=resp_3"))
        self.assertIn("Waiting for result", self.page(f"{url}?answer=resp_none"))

    def test_an_item_of_a_running_response_has_a_fragment_from_its_first_event_on(self) -> None:
        row = made("resp_9", ended_at=None, status="in_progress")
        Event.objects.filter(response=row).delete()
        call = {"id": "mcp_1", "type": "mcp_call", **SERVER, "arguments": "", "status": "in_progress"}
        self._log(row, 0, "response.output_item.added", call)
        page = self.page("/responses/resp_9/items/mcp_1/fragment")
        self.assertIn('aria-label="Call to look of demo"', page)
        self.assertIn("Writing…", page)
        self.assertEqual(ItemBlock({**call, "status": "searching"}, [], took_ms=900).state, "Running…")
        self._log(row, 1, "response.output_item.done", {**call, "arguments": "{}", "output": "fine", **DONE})
        self.assertRegex(self.page("/responses/resp_9/items/mcp_1/fragment"), "(?s)Done.*fine")

    def test_a_long_message_is_whole_on_request(self) -> None:
        row = made()
        text = "word " * 10_000
        snapshot(row, [{"id": "msg_1", **OUTPUT[0], "content": [{**TEXT_PART, "text": text}]}])
        url = "/responses/resp_1/items/msg_1/fragment"
        self.assertIn("(30,000 more characters)", self.page(url))
        self.assertEqual(len(re.findall("word", self.page(f"{url}?whole"))), 10_000)

    def test_a_long_result_is_readable_as_text(self) -> None:
        row = made()
        result = json.dumps({"days": list(range(2_000)), "mark": "a\u202eb"})
        item(row, "fc_1", "function_call", call_id="call_1", name="look", arguments="{}")
        item(row, "fco_1", "function_call_output", call_id="call_1", output=result)
        link = 'class="whole" href="/responses/resp_1/items/fco_1/text?part=0"'
        self.assertIn(link, self.page("/responses/resp_1/items/fco_1/fragment"))
        answer = self.client.get("/responses/resp_1/items/fco_1/text?part=0")
        self.assertEqual(answer["Content-Type"], "text/plain; charset=utf-8")
        self.assertIn('\n    1999\n  ],\n  "mark": "a⟨U+202E⟩b"', answer.content.decode())
        for nothing in ("fco_1/text", "fco_1/text?part=7", "fc_1/text?part=0", "fc_9/text?part=0"):
            with self.subTest(nothing=nothing):
                self.assertEqual(self.client.get(f"/responses/resp_1/items/{nothing}").status_code, 404)

    def test_people_of_other_projects_see_no_item(self) -> None:
        stored()
        self.client.force_login(User.objects.create_user("stranger"))
        self.assertEqual(self.client.get("/responses/resp_1/items/item_0/fragment").status_code, 404)

    def test_unknown_item_is_not_found(self) -> None:
        stored()
        self.assertEqual(self.client.get("/responses/resp_1/items/item_99/fragment").status_code, 404)

    def _log(self, row: Response, number: int, kind: str, one: dict[str, Any]) -> None:
        event = {"type": kind, "sequence_number": number, "output_index": 0, "item": one}
        Event.objects.create(response=row, number=number, type=kind, data=orjson.dumps(event).decode(), ms=number)


class LongInputTest(WebCase):
    """Response with `COUNT` input items."""

    def setUp(self) -> None:
        super().setUp()
        row = made()
        Item.objects.filter(response=row, direction=Direction.INPUT).delete()
        for number in range(COUNT):
            content = [{"type": "input_text", "text": f"Note {number}."}]
            item(row, f"msg_{number}", "message", Direction.INPUT, role="user", content=content)

    def shown(self, query: str = "") -> tuple[list[int], str]:
        """Return the numbers of the shown items, and the text of the page."""
        text = text_of(self.page(f"/responses/resp_1{query}"))
        return [number for number in range(COUNT) if f"Note {number}." in text], text

    def test_the_latest_items_are_shown_with_links_to_the_others(self) -> None:
        numbers, text = self.shown()
        self.assertEqual(numbers, list(range(250, 450)))
        self.assertIn("250 input items before these aren’t shown. Show earlier ones", text)
        self.assertNotIn("behind these", text)
        numbers, text = self.shown("?input=250")
        self.assertEqual(numbers, [*range(50, 250), 449])
        self.assertIn("50 input items before these", text)
        self.assertIn("200 input items behind these aren’t shown. Show later ones", text)
        # The first part is as long as the others.
        self.assertEqual(self.shown("?input=50")[0], [*range(200), 449])

    def test_the_selected_item_is_shown(self) -> None:
        self.assertIn(3, self.shown("?selected=msg_3")[0])
        self.assertIn(401, self.shown("?selected=msg_401")[0])
        self.assertNotIn(401, self.shown("?selected=msg_401&input=200")[0])
