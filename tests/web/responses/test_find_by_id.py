"""Search by id of a response, request, conversation or item, complete or the beginning."""

from __future__ import annotations

from unittest import mock

from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from responses_app.api_formats.chat_completions.completion import completion_id
from responses_app.api_formats.messages.message import message_id
from responses_app.models import Conversation, Item, Membership, Response
from responses_app.runs.ids import new_id
from responses_app.web.responses import search
from responses_app.web.responses.ids import search_by_id
from tests.support.api.case import ApiCase, record_text
from tests.support.store.log_records import NOW
from tests.support.web.page_case import WebCase, item, made
from tests.support.web.response_ids import UID


class FindByIdTest(WebCase):
    """In the search field of the list."""

    def shown(self, text: str) -> list[str]:
        """The ids of the responses that the list shows."""
        return UID.findall(self.page(f"/responses?q={text}"))

    def setUp(self) -> None:
        super().setUp()
        self.uid, self.request_id, self.conv = new_id("resp_"), new_id("req_"), new_id("conv_")
        conversation = Conversation.objects.create(uid=self.conv, project="p", created_at=NOW)
        self.row = made(self.uid, deltas=1, request_id=self.request_id, conversation=conversation)
        self.items = [item(self.row, new_id(prefix), "message").uid for prefix in ("msg_", "fc_", "rs_", "fco_")]
        for number in range(3):
            made(f"resp_other{number}", deltas=1)

    def test_a_whole_id_of_any_kind_finds_its_response(self) -> None:
        # Also behind what a search for text looks through.
        with mock.patch.object(search, "RECENT_WINDOW", 1), mock.patch.object(search, "search_indexed", return_value=None):
            for text in (self.uid, self.request_id, self.conv, *self.items, f"%20{self.uid}%20"):
                with self.subTest(text=text):
                    self.assertEqual(self.shown(text), [self.uid], text)

    def test_the_beginning_of_an_id_finds_it(self) -> None:
        with mock.patch.object(search, "RECENT_WINDOW", 1), mock.patch.object(search, "search_indexed", return_value=None):
            for text in (self.uid, self.request_id, self.conv, *self.items):
                with self.subTest(text=text):
                    start = text[: text.index("_") + 20]
                    self.assertEqual(self.shown(start), [self.uid], start)

    def test_the_id_of_a_completion_or_a_message_finds_its_response(self) -> None:
        with mock.patch.object(search, "RECENT_WINDOW", 1), mock.patch.object(search, "search_indexed", return_value=None):
            for text in (
                completion_id(self.uid),
                completion_id(self.uid)[:30],
                message_id(self.uid),
                message_id(self.uid)[:26],
            ):
                with self.subTest(text=text):
                    self.assertEqual(self.shown(text), [self.uid], text)

    def test_the_page_of_a_completion_or_a_message_is_that_of_its_response(self) -> None:
        for uid in (completion_id(self.uid), message_id(self.uid)):
            with self.subTest(uid=uid):
                self.assertRedirects(self.client.get(f"/responses/{uid}"), f"/responses/{self.uid}")
        self.assertEqual(self.client.get("/responses/chatcmpl-missing", follow=True).status_code, 404)

    def test_an_id_in_the_list_as_it_is_shown_there_finds_it(self) -> None:
        self.assertIn(self.uid, self.shown(self.uid[:13]))

    def test_other_filters_still_narrow_it(self) -> None:
        self.assertEqual(self.shown(f"{self.uid}&status=completed"), [self.uid])
        self.assertEqual(self.shown(f"{self.uid}&status=failed"), [])

    def test_text_that_looks_like_an_id_is_searched_as_text(self) -> None:
        item(
            made("resp_text", deltas=1), "msg_text", "message", content=[{"type": "output_text", "text": "use snake_case_name"}]
        )
        self.assertEqual(self.shown("snake_case_name"), ["resp_text"])
        self.assertEqual(self.shown("resp_nothing_of_this"), [])
        self.assertEqual(self.shown("resp_%25"), [])

    def test_ids_of_other_projects_find_nothing(self) -> None:
        ada = User.objects.create_user("ada")
        Membership.objects.create(user=ada, project="q")
        self.client.force_login(ada)
        for text in (self.uid, self.request_id, self.conv, *self.items):
            with self.subTest(text=text):
                self.assertEqual(self.shown(text), [], text)

    def test_no_query_for_an_id_reads_a_whole_table(self) -> None:
        tables = r"Seq Scan on responses_app_(response|item|conversation)\b"
        for text in (self.uid[:20], self.request_id[:20], self.conv[:20], self.items[0][:20], self.uid, self.items[1]):
            with self.subTest(text=text):
                with CaptureQueriesContext(connection) as queries:
                    self.shown(text)
                for sql in [one["sql"] for one in queries.captured_queries if "responses_app_response" in one["sql"]]:
                    with connection.cursor() as cursor:
                        cursor.execute("SET LOCAL enable_seqscan TO off")
                        cursor.execute("EXPLAIN " + sql.replace("%", "%%"), None)
                        self.assertNotRegex("\n".join(row[0] for row in cursor.fetchall()), tables, sql)

    def test_ids_of_requests_are_looked_up_in_their_index(self) -> None:
        for text in (self.request_id, self.request_id[:30], self.request_id[:14]):
            with self.subTest(text=text), connection.cursor() as cursor:
                rows = search_by_id(Response.objects.order_by(), text)
                assert rows is not None
                self.assertEqual([row.uid for row in rows], [self.uid])
                cursor.execute("SET LOCAL enable_seqscan TO off")
                self.assertRegex(rows.explain(), r"response_request\b.*\n.*Index Cond: .*left")

    def test_another_id_with_the_same_beginning_is_not_found(self) -> None:
        self.assertIsNone(search_by_id(Response.objects.all(), f"{self.request_id[:-1]}x"))


class RequestIdTest(ApiCase):
    """Storage of the request id with the response."""

    async def test_over_http(self) -> None:
        async with self.serving(record_text("<|channel|>final<|message|>Hi<|return|>")) as client:
            for stream in (False, True):
                with self.subTest(stream=stream):
                    answer = await self.post(client, stream=stream)
                    if stream:
                        _ = [part async for part in answer.streaming_content]
                    row = await Response.objects.alatest("pk")
                    self.assertTrue(row.request_id.startswith("req_"))
                    self.assertEqual(row.request_id, answer["x-request-id"])
        self.assertEqual(await Item.objects.filter(response__request_id=row.request_id, direction="input").acount(), 1)
