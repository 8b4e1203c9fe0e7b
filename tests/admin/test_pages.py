"""The admin shows responses, items and events, changes nothing, and never asks for a whole table."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from html import unescape
from unittest import mock

from asgiref.sync import async_to_sync
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import TestCase
from django.test.utils import CaptureQueriesContext

from responses_app.admin.filters import MAX_CHOICES
from responses_app.admin.read_only import MAX_EXACT_COUNT, CappedPaginator
from responses_app.models import (
    ApiKey,
    AuditEntry,
    Conversation,
    Event,
    Item,
    Membership,
    Response,
    WebhookDelivery,
    WebhookEndpoint,
)
from responses_app.store.log.writer import LogWriter
from responses_app.web.delivery import csp
from tests.support.store.log_records import log
from tests.support.store.response_chains import chain
from tests.support.web.page_case import INLINE

NOW = datetime.now(UTC)

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
                for path, sent in (("add", {}), (f"{row.pk}/change", {}), (f"{row.pk}/delete", {"post": "yes"})):
                    reason = f"Nobody can add, change or delete {name}s on this page"
                    self.assertContains(self.client.post(f"{base}{path}/", sent), reason, status_code=403)
        self.assertEqual(Response.objects.count(), 63)

    def test_a_key_can_be_revoked_but_not_made_here(self) -> None:
        key, secret = ApiKey.make("revoked")
        base = "/admin/responses_app/apikey/"
        self.assertEqual(self.client.get(f"{base}add/").status_code, 403)
        form = {"name": "revoked", "project": "revoked", "revoked_at_0": "2026-11-20", "revoked_at_1": "12:00:00"}
        self.assertEqual(self.client.post(f"{base}{key.pk}/change/", form).status_code, 302)
        self.assertIsNone(ApiKey.find(secret))

    def test_names_of_projects_are_suggested_and_new_ones_named(self) -> None:
        ApiKey.make("known", project="known")
        ada, base = User.objects.create_user("ada"), "/admin/responses_app/membership/"
        self.assertContains(self.client.get(f"{base}add/"), '<option value="known">')
        for project, is_new in (("known", False), ("knwon", True)):
            page = self.client.post(f"{base}add/", {"user": ada.pk, "project": project, "role": 1}, follow=True)
            self.assertEqual("is a new project" in page.content.decode(), is_new)
        page = self.client.post("/admin/responses_app/project/add/", {"name": "knownn"}, follow=True)
        self.assertContains(page, "“knownn” is a new project")

    def test_each_input_of_a_key_has_a_label(self) -> None:
        key, _ = ApiKey.make("labelled")
        page = self.client.get(f"/admin/responses_app/apikey/{key.pk}/change/").content.decode()
        inputs = re.findall(r'<input[^>]* name="(?:revoked_at|expires_at)_[01]"[^>]*>', page)
        self.assertEqual([re.findall('aria-label="([^"]+)"', one) for one in inputs], [["Date"], ["Time"]] * 2)
        self.assertEqual(re.findall(r'<input[^>]* name="(\w+)" [^>]*id="id_', page)[:2], ["name", "project"])

    def test_a_key_gets_no_expiry_date_in_the_past(self) -> None:
        key, _ = ApiKey.make("kept")
        form = {"name": "kept", "project": key.project, "expires_at_0": "1999-01-01", "expires_at_1": "00:00:00"}
        page = self.client.post(f"/admin/responses_app/apikey/{key.pk}/change/", form)
        self.assertContains(page, "This time is in the past.")

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

    def test_responses_are_filtered_by_the_newest_keys_and_the_chosen_one(self) -> None:
        oldest = ApiKey.objects.get()
        ApiKey.objects.bulk_create([ApiKey(name=f"many {n}", project="p", digest=str(n)) for n in range(MAX_CHOICES)])
        lists = "/admin/responses_app/response/"
        page = self.client.get(lists).content.decode()
        self.assertIn(f">many {MAX_CHOICES - 1}", page)
        self.assertNotIn(f'?key__id__exact={oldest.pk}"', page)
        self.assertContains(self.client.get(f"{lists}?key__id__exact={oldest.pk}"), f'?key__id__exact={oldest.pk}"')
        self.assertRedirects(self.client.get(f"{lists}?key__id__exact=x"), f"{lists}?e=1")

    def test_an_empty_list_says_so_and_what_to_do(self) -> None:
        for path, words in (
            ("webhookendpoint/", "No webhook endpoints yet. To add, change or delete a webhook, open the page “Webhooks”"),
            ("response/?q=resp_none", 'No responses match. <a href="?">Show all</a>'),
            ("response/?status__exact=queued", 'No responses match. <a href="?">Show all</a>'),
        ):
            self.assertContains(self.client.get(f"/admin/responses_app/{path}"), words)
        page = self.client.get("/admin/responses_app/response/").content.decode()
        self.assertNotIn("match.", page)
        self.assertRegex(page, r'key__isnull=True"[^>]*>\s*None</a>')

    def test_items_are_found_by_the_id_of_their_response(self) -> None:
        page = self.client.get("/admin/responses_app/item/?q=resp_1").content.decode()
        self.assertEqual(sorted(re.findall(r"field-uid[^>]*><a[^>]*>([^<]+)", page)), ["msg_resp_1", "msg_resp_1_out"])

    def test_deliveries_show_their_status_before_long_ids_and_are_found_by_response(self) -> None:
        columns = {"project": "p", "event_types": ["response.failed"], "created_at": NOW, "updated_at": NOW}
        endpoint = WebhookEndpoint.objects.create(uid="we_1", name="A hook", url="https://example.com", secret=b"", **columns)
        for number in range(2):
            WebhookDelivery.objects.create(
                uid=f"wh_{number}", endpoint=endpoint, response_uid=f"resp_{number}", created_at=NOW, due_at=NOW
            )
        page = self.client.get("/admin/responses_app/webhookdelivery/?q=resp_1").content.decode()
        self.assertEqual(re.findall(r"wh_\d", re.sub(r"<[^>]*>", "", page)), ["wh_1"])
        self.assertIn("or a response ID.", page)
        self.assertLess(page.index("column-status"), page.index("column-endpoint"))
        page = self.client.get("/admin/responses_app/webhookendpoint/?q=hook").content.decode()
        self.assertIn("A hook", page)
        self.assertIn("or a part of the name.", page)

    def test_lists_read_neither_bodies_nor_events_in_full(self) -> None:
        for name in ("response", "item"):
            with self.subTest(name=name):
                with CaptureQueriesContext(connection) as queries:
                    self.client.get(f"/admin/responses_app/{name}/")
                for query in queries.captured_queries:
                    self.assertNotRegex(query["sql"], r'SELECT.* "\w+"\."(body|data|history|metadata)"[, ]')

    def test_a_later_page_reads_the_rows_that_it_shows_alone(self) -> None:
        with CaptureQueriesContext(connection) as queries:
            page = self.client.get("/admin/responses_app/item/?p=2")
        newest = list(Item.objects.order_by("-pk").values_list("uid", flat=True))
        self.assertEqual([row.uid for row in page.context["cl"].result_list], newest[50:100])
        skipping = [query["sql"] for query in queries.captured_queries if "OFFSET" in query["sql"]]
        self.assertRegex(skipping[0], r'IN \(SELECT \w+\."id" .* OFFSET 50\)')

    def test_lists_count_entries_and_name_columns_as_the_pages_do(self) -> None:
        AuditEntry.objects.bulk_create([AuditEntry(at=NOW, actor_kind="user", action="x") for _ in range(4)])
        count = AuditEntry.objects.count()
        self.assertContains(self.client.get("/admin/responses_app/auditentry/"), f"{count} audit log entries")
        WebhookEndpoint.objects.create(project="p", event_types=[], secret=b"", created_at=NOW, updated_at=NOW)
        self.assertContains(self.client.get("/admin/responses_app/webhookendpoint/"), "URL</")

    def test_staff_see_links_alone_to_pages_that_they_may_open(self) -> None:
        staff = User.objects.create_user("staff", is_staff=True)
        conversation = Conversation.objects.create(uid="conv_1", project="p", metadata="{}", created_at=NOW)
        row = Response.objects.get(uid="resp_1")
        Response.objects.filter(pk=row.pk).update(conversation=conversation, key=ApiKey.objects.first())
        member = Membership.objects.create(user=staff, project="else")
        shown = (row, Item.objects.filter(response=row)[0], conversation, member)
        self.client.force_login(staff)
        for names in (["response"], ["response", "item", "conversation", "membership"], ["membership"]):
            staff.user_permissions.set(Permission.objects.filter(codename__in=[f"view_{name}" for name in names]))
            for one in shown:
                name = str(one._meta.model_name)
                page = self.client.get(f"/admin/responses_app/{name}/{one.pk}/change/")
                self.assertEqual(page.status_code, 200 if name in names else 403)
                main = page.content.decode().partition('id="content-main"')[2]
                for link in re.findall(r'<a href="(/[^"]+)"', main):
                    self.assertLess(self.client.get(unescape(link)).status_code, 400, (names, link))

    def test_no_page_lies_deeper_than_postgres_would_step(self) -> None:
        with mock.patch.object(CappedPaginator, "count", 30_000_000):
            self.assertEqual(CappedPaginator(Event.objects.all(), 50).num_pages, 4000)

    def test_the_paginator_counts_exactly_while_that_is_cheap(self) -> None:
        self.assertEqual(CappedPaginator(Event.objects.all(), 50).count, 66)
        self.assertGreater(MAX_EXACT_COUNT, 66)
