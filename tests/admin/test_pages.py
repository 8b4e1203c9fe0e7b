"""The admin shows responses, items and events, changes nothing, and never asks for a whole table."""

from __future__ import annotations

import re
from unittest import mock

from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.db import connection
from django.test import TestCase
from django.test.utils import CaptureQueriesContext

from responses_app.admin.read_only import MAX_EXACT_COUNT, CappedPaginator
from responses_app.models import ApiKey, Event, Item, Response
from responses_app.store.log.writer import LogWriter
from responses_app.web.delivery import csp
from tests.support.store.log_records import log
from tests.support.store.response_chains import chain
from tests.support.web.page_case import INLINE

OURS = re.compile(r"FROM \"responses_app_(response|item|event|page)\"")
# What may be read without a limit: a row by its key, and what belongs to one response.
BOUNDED = re.compile(r"LIMIT \d+|\"id\" = \d+|_id\" = \d+|\"uid\" = '")


def counted(sql: str, queries: list[dict[str, str]]) -> bool:
    """Whether a limited count had found that few rows match."""
    where = sql.partition(" WHERE ")[2].partition(" ORDER BY ")[0]
    return bool(where) and any(f"WHERE {where} LIMIT {MAX_EXACT_COUNT + 1})" in query["sql"] for query in queries)


class AdminTest(TestCase):
    """With a superuser, against the real database."""

    @classmethod
    def setUpTestData(cls) -> None:
        async def fill() -> None:
            recorder = LogWriter()
            await chain(recorder, *(f"resp_{n}" for n in range(3)))
            await recorder.close()

        async_to_sync(fill)()
        many = Response.objects.bulk_create([log(f"resp_many_{n}").row for n in range(60)])
        Item.objects.bulk_create(
            [Item(uid=f"msg_{n}", response=many[0], project="p", type="message", body="{}") for n in range(60)]
        )
        Event.objects.bulk_create([Event(response=many[0], number=n, type="x", data="{}") for n in range(60)])
        ApiKey.make("admin test")

    def setUp(self) -> None:
        self.client.force_login(User.objects.create_superuser("root", "", "x"))

    def pages(self) -> list[str]:
        """Every kind of page, with filters and searches."""
        pk = Response.objects.get(uid="resp_1").pk
        lists = [
            f"/admin/responses_app/{name}/"
            for name in ("response", "item", "apikey", "conversation", "conversationitem", "membership")
        ]
        some = [
            f"{lists[0]}?q=resp_1",
            f"{lists[0]}?status__exact=completed",
            f"{lists[1]}?q=msg_",
            f"{lists[1]}?q=resp_1",
            f"{lists[1]}?response__id__exact={pk}",
        ]
        one = [f"{lists[0]}{pk}/change/", f"{lists[1]}{Item.objects.values_list('pk', flat=True).first()}/change/"]
        return [*lists, *some, f"{lists[0]}?p=1", *one]

    def test_every_page_opens_and_no_query_reads_a_whole_table(self) -> None:
        for page in self.pages():
            with self.subTest(page=page), CaptureQueriesContext(connection) as queries:
                self.assertEqual(self.client.get(page).status_code, 200)
            for query in queries.captured_queries:
                if OURS.search(query["sql"]) and not counted(query["sql"], queries.captured_queries):
                    self.assertRegex(query["sql"], BOUNDED)

    def test_every_page_has_the_policy_of_all_pages_and_nothing_inline(self) -> None:
        for page in self.pages():
            answer = self.client.get(page)
            self.assertEqual(answer["Content-Security-Policy"], csp.POLICY)
            self.assertIsNone(INLINE.search(re.sub(r"&lt;.*?&gt;", "", answer.content.decode())), page)

    def test_direction_characters_are_shown_by_name(self) -> None:
        row = Response.objects.get(uid="resp_many_0")
        body = '{"type":"x","delta":"\\u001b[31m\u202egnp.exe<script>"}'
        item = Item.objects.create(uid="msg_odd", response=row, project="p", type="message", body=body)
        text = self.client.get(f"/admin/responses_app/item/{item.pk}/change/").content.decode()
        self.assertIn("⟨U+202E⟩gnp.exe&lt;script&gt;", text)
        self.assertNotIn("\u202e", text)

    def test_a_response_leads_to_its_items_and_its_neighbours(self) -> None:
        row = Response.objects.get(uid="resp_1")
        page = self.client.get(f"/admin/responses_app/response/{row.pk}/change/").content.decode()
        for link in re.findall(r'href="(/admin/responses_app/[^"]*(?:\?|&amp;)[^"]*)"', page):
            self.assertEqual(self.client.get(link.replace("&amp;", "&")).status_code, 200)

    def test_nothing_can_be_added_changed_or_deleted(self) -> None:
        for name, row in (
            ("response", Response.objects.earliest("pk")),
            ("item", Item.objects.earliest("pk")),
        ):
            with self.subTest(name=name):
                base = f"/admin/responses_app/{name}/"
                self.assertEqual(self.client.get(f"{base}add/").status_code, 403)
                self.assertEqual(self.client.post(f"{base}{row.pk}/change/", {}).status_code, 403)
                self.assertEqual(self.client.post(f"{base}{row.pk}/delete/", {"post": "yes"}).status_code, 403)
        self.assertEqual(Response.objects.count(), 63)

    def test_a_key_can_be_revoked_but_not_made_here(self) -> None:
        key, secret = ApiKey.make("revoked")
        base = "/admin/responses_app/apikey/"
        self.assertEqual(self.client.get(f"{base}add/").status_code, 403)
        form = {"name": "revoked", "project": "revoked", "revoked_at_0": "2026-11-20", "revoked_at_1": "12:00:00"}
        self.assertEqual(self.client.post(f"{base}{key.pk}/change/", form).status_code, 302)
        self.assertIsNone(ApiKey.find(secret))

    def test_each_input_of_a_key_has_a_label(self) -> None:
        key, _ = ApiKey.make("labelled")
        page = self.client.get(f"/admin/responses_app/apikey/{key.pk}/change/").content.decode()
        inputs = re.findall(r'<input[^>]* name="(?:revoked_at|expires_at)_[01]"[^>]*>', page)
        self.assertEqual([re.findall('aria-label="([^"]+)"', one) for one in inputs], [["Date"], ["Time"]] * 2)

    def test_lists_of_keys_are_filtered_by_revoked_with_yes_and_no(self) -> None:
        key, _ = ApiKey.make("lost")
        ApiKey.objects.filter(pk=key.pk).update(revoked_at="2026-11-20T12:00:00Z")
        page = self.client.get("/admin/responses_app/apikey/").content.decode()
        self.assertInHTML("<summary>By revoked</summary>", page)
        self.assertNotIn("Not empty", page)
        for word, names in (("Yes", ["lost"]), ("No", ["admin test"])):
            link = re.search(rf'<a href="([^"]*revoked_at__isempty[^"]*)">\s*{word}</a>', page)
            assert link, word
            shown = self.client.get(f"/admin/responses_app/apikey/{link[1]}").content.decode()
            self.assertEqual(re.findall(r"field-name[^>]*><a[^>]*>([^<]+)", shown), names)

    def test_items_are_found_by_the_id_of_their_response(self) -> None:
        page = self.client.get("/admin/responses_app/item/?q=resp_1").content.decode()
        self.assertEqual(sorted(re.findall(r"field-uid[^>]*><a[^>]*>([^<]+)", page)), ["msg_resp_1", "msg_resp_1_out"])

    def test_lists_read_neither_bodies_nor_events_in_full(self) -> None:
        for name in ("response", "item"):
            with self.subTest(name=name):
                with CaptureQueriesContext(connection) as queries:
                    self.client.get(f"/admin/responses_app/{name}/")
                for query in queries.captured_queries:
                    self.assertNotRegex(query["sql"], r'SELECT.* "\w+"\."(body|data|history|metadata)"[, ]')

    def test_no_page_lies_deeper_than_postgres_would_step(self) -> None:
        with mock.patch.object(CappedPaginator, "count", 30_000_000):
            self.assertEqual(CappedPaginator(Event.objects.all(), 50).num_pages, 4000)

    def test_the_paginator_counts_exactly_while_that_is_cheap(self) -> None:
        self.assertEqual(CappedPaginator(Event.objects.all(), 50).count, 66)
        self.assertGreater(MAX_EXACT_COUNT, 66)
