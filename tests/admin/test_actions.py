"""Actions of the admin: responses are stopped, deleted and exported through the code of the API; and pages lead to each other."""

from __future__ import annotations

import re
from unittest import mock

import orjson
from django.contrib.auth.models import Permission, User
from django.http import StreamingHttpResponse
from django.test import TestCase
from django.utils import timezone

from responses_app.admin import actions
from responses_app.models import AuditEntry, Conversation, Item, Response
from responses_app.store import paging
from tests.support.web.page_case import collect, item, made, snapshot

LIST = "/admin/responses_app/response/"


class ActionsTest(TestCase):
    """With a superuser."""

    def setUp(self) -> None:
        self.root = User.objects.create_superuser("root", "", "x")
        self.client.force_login(self.root)

    def chosen(self, action: str, *rows: Response, **more: str) -> dict[str, object]:
        """The form of an action."""
        return {"action": action, "_selected_action": [row.pk for row in rows], **more}

    def test_deletion_asks_first_and_keeps_what_others_need(self) -> None:
        one, other = made("resp_1"), made("resp_2", thread="resp_1", previous_uid="resp_1")
        other.history = [Item.objects.get(uid="msg_in_resp_1").pk]
        other.save()
        page = self.client.post(LIST, self.chosen("delete", one)).content.decode()
        self.assertIn("resp_1</a>: ", page)
        self.assertIn("0 items", page)
        self.assertTrue(Response.objects.filter(pk=one.pk).exists())
        self.client.post(LIST, self.chosen("delete", one, confirmed="yes"))
        self.assertFalse(Response.objects.filter(pk=one.pk).exists())
        self.assertTrue(Item.objects.filter(uid="msg_in_resp_1").exists())

    def test_a_deletion_takes_a_number_of_responses_that_a_form_can_send(self) -> None:
        rows = [made(f"resp_{number}") for number in range(3)]
        with mock.patch.object(actions, "MAX_DELETED", 2):
            page = self.client.post(LIST, self.chosen("delete", rows[0], select_across="1")).content.decode()
        self.assertIn("Kept: 1 more selected response.", page)
        chosen = re.findall(r'name="_selected_action" value="(\d+)"', page)
        self.assertEqual(chosen, [str(rows[2].pk), str(rows[1].pk)])
        self.client.post(LIST, {"action": "delete", "confirmed": "yes", "_selected_action": chosen})
        self.assertEqual([row.uid for row in Response.objects.all()], ["resp_0"])

    def test_export_has_a_line_for_each(self) -> None:
        rows = [made(f"resp_{number}") for number in range(3)]
        for row in rows[:2]:
            snapshot(row, [])
        answer = self.client.post(LIST, self.chosen("export", *rows))
        # Of an iterator that is not asynchronous, the server would first collect everything.
        assert isinstance(answer, StreamingHttpResponse)
        self.assertTrue(answer.is_async)
        lines = collect(answer).splitlines()
        self.assertEqual([orjson.loads(line)["id"] for line in lines[:2]], ["resp_0", "resp_1"])
        self.assertEqual(len(lines), 3)
        self.assertEqual(AuditEntry.objects.filter(action="response.export").count(), 3)

    def test_export_of_a_whole_list_is_one_entry_of_the_audit_log(self) -> None:
        names = [f"resp_{number}" for number in range(paging.BATCH * 2 + 1)]
        rows = Response.objects.bulk_create(Response(uid=name, thread=name, created_at=timezone.now()) for name in names)
        sent = {**self.chosen("export", rows[0]), "select_across": "1"}
        lines = collect(self.client.post(f"{LIST}?status__exact={rows[0].status}", sent)).splitlines()
        self.assertEqual([orjson.loads(line)["id"] for line in lines], names)
        entry = AuditEntry.objects.get(action="response.export")
        self.assertEqual(entry.object, f"{len(rows)} responses with status__exact={rows[0].status}")

    def test_stopping_those_that_have_ended_does_nothing(self) -> None:
        page = self.client.post(LIST, self.chosen("cancel", made()), follow=True).content.decode()
        self.assertIn("0 of 0", page)

    def test_actions_need_more_than_the_view_permission(self) -> None:
        row = made()
        ada = User.objects.create_user("ada", is_staff=True)
        ada.user_permissions.add(Permission.objects.get(codename="view_response"))
        self.client.force_login(ada)
        self.client.post(LIST, self.chosen("delete", row, confirmed="yes"))
        self.assertTrue(Response.objects.filter(pk=row.pk).exists())
        self.assertIn(b"Export", self.client.get(LIST).content)
        self.assertNotIn(b"Delete responses", self.client.get(LIST).content)

    def test_pages_lead_to_each_other(self) -> None:
        conversation = Conversation.objects.create(uid="conv_1", project="p", created_at=timezone.now())
        row = made(conversation=conversation)
        stored_item = item(row, "msg_1", "message")
        pages = (
            f"{LIST}{row.pk}/change/",
            f"/admin/responses_app/item/{stored_item.pk}/change/",
            f"/admin/responses_app/conversation/{conversation.pk}/change/",
        )
        links: set[str] = set()
        for page in pages:
            text = self.client.get(page).content.decode()
            links |= set(re.findall(r'href="(/(?:admin/responses_app|responses)/[^"]*)"', text))
        self.assertLessEqual({pages[0], pages[2], "/responses/resp_1"}, links)
        for link in links:
            self.assertEqual(self.client.get(link.replace("&amp;", "&")).status_code, 200, link)
