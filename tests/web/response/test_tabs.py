"""Tabs of a response: conversation, events, raw stream, prompt, chain and validation; and output of a hostile model."""

from __future__ import annotations

import re
from base64 import b64encode
from io import BytesIO

import orjson
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from PIL import Image as Picture

from responses_app.models import Conversation, Direction, Event, Item, LogForm, Response, StoredRequest
from responses_app.store.log.archive import archive_log
from responses_app.store.log.token_log import encode_tokens
from tests.support.store.log_records import NOW
from tests.support.store.stored_logs import log_frames
from tests.support.web.page_case import LARGEST, PLAIN_REQUEST, WebCase, item, made, snapshot, text_of

TABS = ("", "/events", "/wire", "/prompt", "/cache", "/chain", "/check", "/delete")
PICTURE_OF_CODE = "data:image/svg+xml;base64,PHN2Zz4="
HOSTILE = (
    "<script>alert(1)</script><img src=x onerror=alert(1)>\x1b[31mred\u202eeslaf\u202c"
    + "W" * 5000
    + "\n\n[x](javascript:alert(1))"
)


class ResponseTest(WebCase):
    """Against the real database."""

    def test_every_view_opens_while_the_log_is_rows_and_when_it_is_sealed(self) -> None:
        row = made(deltas=400)
        for form in ("rows", "pages"):
            if form == "pages":
                archive_log(row.pk)
            for tab in TABS:
                with self.subTest(tab=tab, form=form):
                    self.assertLess(len(self.page(f"/responses/resp_1{tab}")), LARGEST)

    def test_ended_response_links_to_the_chat(self) -> None:
        made()
        self.assertIn('href="/chat?previous_response_id=resp_1"', self.page("/responses/resp_1"))
        made("resp_running", ended_at=None, status="in_progress")
        self.assertNotIn("Continue in chat", self.page("/responses/resp_running"))

    def test_unknown_ids_are_not_found(self) -> None:
        made()
        nowhere = ("resp_1/events/9999", "resp_1/items/msg_none", "resp_1/items/msg_in_resp_1/images/0")
        for path in ("nobody", "nobody/events", "%00", *nowhere):
            with self.subTest(path=path):
                self.assertEqual(self.client.get(f"/responses/{path}").status_code, 404, path)

    def test_runs_of_deltas_are_one_line_with_count_time_and_rate_and_can_be_opened(self) -> None:
        made(deltas=100)
        page = self.page("/responses/resp_1/events")
        self.assertIn("<b>20 ×</b> response.reasoning_text.delta", page)
        self.assertRegex(page, r"<b>80 ×</b> response.output_text.delta <span class=\"quiet\">in 1343 ms, 58.8/s")
        opened = re.search(r'href="\?(open=\d+)#', page)
        assert opened
        self.assertEqual(self.page(f"/responses/resp_1/events?{opened[1]}").count("</tr>"), page.count("</tr>") + 19)
        some = self.page("/responses/resp_1/events?kind=life")
        self.assertEqual(
            re.findall(r"<td>(response[.\w]+)", some), ["response.created", "response.in_progress", "response.completed"]
        )

    def test_the_lines_lead_through_a_long_log(self) -> None:
        row = made(deltas=3)
        Event.objects.filter(response=row).delete()
        Event.objects.bulk_create(
            [
                Event(
                    response=row, number=n, type=f"response.x{n % 2}.done", data=f'{{"type":"x","sequence_number":{n}}}', ms=n
                )
                for n in range(450)
            ]
        )
        url, seen = "/responses/resp_1/events", []
        while url:
            page = self.page(url)
            seen += [int(number) for number in re.findall(r'id="e(\d+)"', page)]
            link_match = re.search(r'href="(\?[^"]*)" rel="next"', page)
            url = "/responses/resp_1/events" + link_match[1] if link_match else ""
        self.assertEqual(seen, list(range(450)))
        back = re.search(r'href="(\?[^"]*)" rel="prev"', page)
        assert back
        self.assertIn('id="e200"', self.page("/responses/resp_1/events" + back[1]))

    def test_an_event_shows_the_response_as_it_was_then(self) -> None:
        made(deltas=30)
        page = self.page("/responses/resp_1/events/20")
        self.assertIn("sequence_number&quot;: 20", page)
        folded = orjson.loads(self.client.get("/responses/resp_1/events/20?as=folded").content)
        self.assertEqual(folded["status"], "in_progress")
        self.assertTrue(folded["output"])
        self.assertEqual(self.client.get("/responses/resp_1/events/20?as=json").content, log_frames(30)[20].data)

    def test_the_wire_is_what_was_sent_and_can_be_taken_away(self) -> None:
        made(deltas=5)
        page = self.page("/responses/resp_1/wire")
        self.assertIn("event: response.created\ndata: {&quot;type&quot;:&quot;response.created&quot;", page)
        self.assertIn("client.responses.create(", page)
        sse = self.download("/responses/resp_1.sse")
        self.assertTrue(sse.startswith(b"event: response.created\ndata: "))
        self.assertTrue(sse.endswith(b"data: [DONE]\n\n"))
        lines = self.download("/responses/resp_1.jsonl").splitlines()
        self.assertEqual(lines, [frame.data for frame in log_frames(5)])
        self.assertEqual(orjson.loads(self.client.get("/responses/resp_1.json").content)["status"], "completed")

    def test_a_thinned_log_is_still_shown_and_not_judged(self) -> None:
        row = made(deltas=100)
        archive_log(row.pk)
        Response.objects.filter(pk=row.pk).update(log_form=LogForm.WITHOUT_DELTAS)
        self.assertIn("can’t be validated", self.page("/responses/resp_1/check"))
        for tab in TABS:
            self.page(f"/responses/resp_1{tab}")

    def test_calls_stand_with_their_outputs_here_and_in_later_responses(self) -> None:
        row = made()
        call = {
            "id": "fc_1",
            "type": "function_call",
            "call_id": "call_1",
            "name": "get_weather",
            "arguments": '{"city":"Paris"}',
        }
        other = {**call, "id": "fc_2", "call_id": "call_2", "name": "get_time"}
        thought = {
            "id": "rs_1",
            "type": "reasoning",
            "summary": [],
            "content": [{"type": "reasoning_text", "text": "I think."}],
        }
        item(row, "fc_0", "function_call", Direction.INPUT, call_id="call_0", name="f", arguments="{}")
        item(row, "fco_0", "function_call_output", Direction.INPUT, call_id="call_0", output="sunny")
        snapshot(row, [thought, call, other])
        later = made("resp_2", thread="resp_1", previous_uid="resp_1")
        item(later, "fco_1", "function_call_output", Direction.INPUT, call_id="call_1", output="22 degrees")
        page = self.page("/responses/resp_1")
        self.assertRegex(
            page,
            r"(?s)<code>f</code>.*?sunny.*?<summary><span class=\"label\">Thought</span>.*?I think\..*?get_weather"
            r".*?22 degrees.*?resp_2.*?get_time",
        )
        self.assertIn("&quot;city&quot;: &quot;Paris&quot;", page)

    def test_markdown_is_rendered_and_harmless_and_hostile_text_stays_text(self) -> None:
        row = made()
        answer = {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "**bold** " + HOSTILE}],
        }
        call = {"id": "fc_1", "type": "function_call", "call_id": "c", "name": HOSTILE, "arguments": HOSTILE}
        snapshot(row, [answer, call])
        item(row, "msg_2", "message", Direction.INPUT, role="user", content=HOSTILE)
        item(row, "msg_3", "message", Direction.OUTPUT, role="assistant", content=[{"type": "output_text", "text": HOSTILE}])
        for tab in (*TABS, "/events/1"):
            with self.subTest(tab=tab):
                page = self.page(f"/responses/resp_1{tab}")
                self.assertNotIn("<script>alert", page)
                self.assertNotIn("<img src=x", page)
                self.assertNotIn("\x1b", page)
        page = self.page("/responses/resp_1")
        self.assertIn("<strong>bold</strong>", page)
        self.assertIn("⟨U+001B⟩[31mred⟨U+202E⟩eslaf", page)
        self.assertNotIn("<script>alert", self.page("/responses"))

    def test_five_megabytes_of_arguments_are_cut_and_can_be_had_in_full(self) -> None:
        row = made()
        huge = "x" * 5_000_000
        call = {"id": "fc_1", "type": "function_call", "call_id": "c", "name": "f", "arguments": huge}
        snapshot(row, [call])
        item(row, "fc_1", "function_call", call_id="c", name="f", arguments=huge)
        for tab in (*TABS, "/events/1"):
            with self.subTest(tab=tab):
                self.assertLess(len(self.page(f"/responses/resp_1{tab}")), 200_000, tab)
        page = self.page("/responses/resp_1")
        self.assertIn("4,996,000 more characters", page)
        self.assertGreater(len(self.client.get("/responses/resp_1/items/fc_1").content), 5_000_000)

    def test_pictures_come_out_of_the_store(self) -> None:
        row, file = made(), BytesIO()
        Picture.new("RGB", (2, 2)).save(file, "PNG")
        url = "data:image/png;base64," + b64encode(file.getvalue()).decode()
        item(row, "msg_pic", "message", Direction.INPUT, role="user", content=[{"type": "input_image", "image_url": url}])
        source = re.search(r'<img class="picture" src="([^"]+)"', self.page("/responses/resp_1"))
        assert source
        answer = self.client.get(source[1])
        self.assertEqual((answer.content, answer["Content-Type"]), (file.getvalue(), "image/png"))
        self.assertEqual(answer["Content-Disposition"], 'inline; filename="image_1.png"')
        self.assertIn(f'<a href="{source[1]}" title="Open in full size" target="_blank">', self.page("/responses/resp_1"))
        item(
            row,
            "msg_svg",
            "message",
            Direction.INPUT,
            role="user",
            content=[{"type": "input_image", "image_url": PICTURE_OF_CODE}],
        )
        self.assertEqual(self.client.get("/responses/resp_1/items/msg_svg/images/0").status_code, 404)

    def test_the_prompt_without_its_model_is_numbers(self) -> None:
        row = made()
        StoredRequest.objects.create(response=row, create_request=PLAIN_REQUEST, prompt_tokens=encode_tokens([5, 6, 70000]))
        page = self.page("/responses/resp_1/prompt")
        self.assertIn("3 tokens", page)
        self.assertIn("5 6 70000", page)

    def test_the_chain_is_a_tree_with_forks(self) -> None:
        made("resp_1")
        for uid, before in (("resp_2", "resp_1"), ("resp_3", "resp_2"), ("resp_4", "resp_1"), ("resp_5", "resp_gone")):
            made(uid, thread="resp_1", previous_uid=before)
        page = self.page("/responses/resp_2/chain")
        links = re.findall(
            r'<li class="depth-(\d+)( here)?"(?: id="here")?(?: value="(\d)")?><div class="turn"><p>'
            r'(?:<span role="img" aria-label="(Branch)">)?.*?href="/responses/(resp_\d)"',
            page,
            re.DOTALL,
        )
        self.assertEqual(
            links,
            [
                ("0", "", "1", "", "resp_1"),
                ("1", "", "2", "Branch", "resp_4"),
                ("0", " here", "2", "", "resp_2"),
                ("0", "", "3", "", "resp_3"),
                ("0", "", "", "", "resp_5"),
            ],
        )
        self.assertIn('<a href="#here">Turn 2 of 3</a>', page)
        self.assertNotIn("Turn ", self.page("/responses/resp_5/chain"))

    def test_the_chain_numbers_the_turns_of_a_conversation(self) -> None:
        conversation = Conversation.objects.create(uid="conv_1", project="default", created_at=NOW)
        for uid in ("resp_1", "resp_2", "resp_3"):
            made(uid, thread="conv_1", conversation=conversation)
        self.assertIn("Turn 3 of 3</a>.", self.page("/responses/resp_3/chain"))

    def test_a_line_of_the_chain_begins_with_the_question(self) -> None:
        made("resp_1")
        made("resp_2", thread="resp_1", previous_uid="resp_1")
        lines = [
            text_of(line) for line in re.findall(r"<li class=\"depth-.*?</li>", self.page("/responses/resp_2/chain"), re.DOTALL)
        ]
        self.assertEqual([line.partition(" Completed")[0] for line in lines], ["Hi from resp_1", "Hi from resp_2"])

    def test_the_chain_lists_reruns_below_their_original(self) -> None:
        made("resp_1")
        made("resp_2", thread="resp_1", previous_uid="resp_1")
        made("resp_3", thread="resp_1", previous_uid="resp_1", rerun_of="resp_2")
        # The rerun of a first response is in another thread, and its answer to a call continues the rerun.
        made("resp_4", rerun_of="resp_1")
        made("resp_5", thread="resp_4", previous_uid="resp_4", rerun_of="resp_2")
        for uid in ("resp_1", "resp_4"):
            page = self.page(f"/responses/{uid}/chain")
            links = re.findall(r'<li class="depth-(\d+)(?: here)?"[^>]*>(.*?)href="/responses/(resp_\d)"', page, re.DOTALL)
            self.assertEqual(
                [(depth, "Rerun" in before, found) for depth, before, found in links],
                [
                    ("0", False, "resp_1"),
                    ("1", True, "resp_4"),
                    ("1", True, "resp_5"),
                    ("0", False, "resp_2"),
                    ("1", True, "resp_3"),
                ],
            )

    def test_address_of_the_earlier_comparison_leads_to_the_rerun_page(self) -> None:
        for uid, text in (("resp_1", "the same but one"), ("resp_2", "the same but two")):
            row = made(uid)
            snapshot(row, [{"id": f"msg_{uid}", "type": "message", "content": [{"type": "output_text", "text": text}]}])
        answer = self.client.get("/responses/compare?a=resp_1&b=resp_2")
        self.assertRedirects(answer, "/responses/resp_1/rerun?column=resp_2", fetch_redirect_response=False)
        self.assertIn("the same but <del>one</del><ins>two</ins>", self.page(answer["Location"]))
        self.assertRedirects(
            self.client.get("/responses/compare?a=resp_1"), "/responses/resp_1/rerun", fetch_redirect_response=False
        )
        self.assertRedirects(
            self.client.get("/responses/compare?b=resp_2"), "/responses/resp_2/rerun", fetch_redirect_response=False
        )
        self.assertRedirects(self.client.get("/responses/compare"), "/responses")
        unknown = self.client.get("/responses/compare?a=resp_1&b=resp_none")
        self.assertContains(unknown, "No response with this ID", status_code=404)

    def test_deletion_tells_what_goes_and_keeps_what_others_need(self) -> None:
        row = made()
        mine = Item.objects.get(uid="msg_in_resp_1")
        item(row, "msg_alone", "message")
        made("resp_2", thread="resp_1", previous_uid="resp_1", history=[mine.pk])
        page = self.page("/responses/resp_1/delete")
        self.assertIn("1 item.", page)
        self.assertIn("1 of its items is kept", page)
        self.assertIn("resp_2", page)
        self.assertRedirects(self.client.post("/responses/resp_1/delete"), "/responses")
        self.assertFalse(Response.objects.filter(uid="resp_1").exists())
        self.assertEqual(list(Item.objects.values_list("uid", flat=True).order_by("pk")), ["msg_in_resp_1", "msg_in_resp_2"])

    @pytest.mark.slow
    def test_pages_of_ten_thousand_events_are_small_and_ask_little(self) -> None:
        row = made(deltas=10_000)
        for form in ("rows", "pages"):
            with self.subTest(form=form):
                if form == "pages":
                    archive_log(row.pk)
                for tab in ("", "/events", "/events/9000", "/wire", "/check"):
                    with self.subTest(tab=tab):
                        with CaptureQueriesContext(connection) as queries:
                            self.assertLess(len(self.page(f"/responses/resp_1{tab}")), LARGEST, tab)
                        # A log is read a page at a time: 500 rows, or two sealed ones.
                        self.assertLess(len(queries), 50, tab)
