"""Append-only audit log, its entries for actions on the pages and in commands, and its retention."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from io import StringIO
from threading import Barrier, BrokenBarrierError
from typing import Any
from unittest import mock

from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import IntegrityError, connections, transaction
from django.test import TestCase, TransactionTestCase
from django.utils import timezone

from responses_app.models import ApiKey, AuditEntry, Membership, Response
from responses_app.store import audit_log
from responses_app.web.accounts import login_throttle
from tests.support.store.log_records import log
from tests.support.web.page_case import collect

PASSWORD = "countess of lovelace"


def entries(action: str) -> list[tuple[str, str, str, str]]:
    """Return actor, object, project and outcome of the entries of `action`, oldest first."""
    rows = AuditEntry.objects.filter(action=action).order_by("pk")
    return list(rows.values_list("actor", "object", "project", "outcome"))


class AppendOnlyTest(TestCase):
    """The table in Postgres."""

    def setUp(self) -> None:
        audit_log.record(audit_log.Actor(audit_log.Kind.COMMAND, name="root"), "prune", "responses 7d")

    def test_postgres_refuses_update_and_delete(self) -> None:
        for change in (lambda: AuditEntry.objects.update(actor="nobody"), lambda: AuditEntry.objects.all().delete()):
            with self.assertRaisesMessage(IntegrityError, "not changed or deleted"), transaction.atomic():
                change()
        self.assertEqual(entries("prune"), [("root", "responses 7d", "", "success")])

    def test_retention_deletes_old_entries_alone(self) -> None:
        now = timezone.now()
        audit_log.record(audit_log.command(), "erase", "project p", "p")
        later = now + timedelta(days=1)
        self.assertEqual(sum(audit_log.prune(later, None)), 0)
        self.assertEqual(sum(audit_log.prune(later, timedelta(days=2))), 0)
        self.assertEqual(sum(audit_log.prune(later, timedelta(hours=1))), 2)

    def test_texts_that_postgres_refuses_are_stored_without_these_characters(self) -> None:
        audit_log.record(audit_log.Actor(audit_log.Kind.KEY, 3, "k" * 500), "erase", "a\0b \ud800")
        self.assertEqual(entries("erase"), [("k" * 150, "ab ?", "", "success")])


class PagesTest(TestCase):
    """Entries for actions on the pages."""

    def setUp(self) -> None:
        self.ada = User.objects.create_user("ada", password=PASSWORD)
        Membership.objects.create(user=self.ada, project="p")
        self.row = log("resp_audited").row
        Response.objects.bulk_create([self.row])

    def sign_in(self, **form: str) -> int:
        """Return the status of a sign-in."""
        form = {"username": "ada", "password": PASSWORD, **form}
        return self.client.post("/sign-in", form, REMOTE_ADDR="203.0.113.9").status_code

    def test_sign_in_failure_refusal_and_sign_out(self) -> None:
        self.sign_in(password="wrong")
        self.sign_in(username="my password by mistake", password="wrong")
        self.sign_in()
        self.client.post("/sign-out")
        for _ in range(login_throttle.MAX_ATTEMPTS["pair"] + 2):
            self.sign_in(password="wrong")
        signed_in = entries("sign-in")
        self.assertEqual(
            signed_in[:3],
            [("", "account ada", "", "failure"), ("", "unknown account", "", "failure"), ("ada", "account ada", "", "success")],
        )
        self.assertEqual(entries("sign-out"), [("ada", "account ada", "", "success")])
        self.assertEqual([one for one in signed_in if one[3] == "refused"], [("", "account ada", "", "refused")])
        self.assertEqual(set(AuditEntry.objects.filter(action="sign-in").values_list("address", flat=True)), {"203.0.113.9"})
        self.assertFalse(AuditEntry.objects.filter(object__contains="mistake").exists())

    def test_reads_of_others_once_an_hour_and_own_reads_never(self) -> None:
        self.client.force_login(self.ada)
        for _ in range(2):
            self.client.get("/responses/resp_audited/events")
        self.assertEqual(entries("response.read"), [("ada", "response resp_audited", "p", "success")])
        stored = log("resp_own").row
        stored.user = self.ada
        Response.objects.bulk_create([stored])
        self.assertEqual(self.client.get("/responses/resp_own/wire").status_code, 200)
        self.assertEqual(len(entries("response.read")), 1)

    def test_keys_and_deletion(self) -> None:
        self.client.force_login(self.ada)
        self.client.post("/keys", {"name": "CI", "project": "p"})
        key = ApiKey.objects.get(name="CI")
        self.client.post(f"/keys/{key.pk}", {"name": "CI 2"})
        self.client.post(f"/keys/{key.pk}/revoke")
        actions = list(AuditEntry.objects.filter(action__startswith="key.").order_by("pk").values_list("action", "project"))
        self.assertEqual(actions, [("key.create", "p"), ("key.change", "p"), ("key.revoke", "p")])
        self.client.post("/responses/selection", {"action": "export", "uid": "resp_audited"})
        self.assertEqual(entries("response.export"), [("ada", "response resp_audited", "p", "success")])


class SimultaneousReadsTest(TransactionTestCase):
    """Requests of one page, at the same time."""

    def test_reads_at_the_same_time_make_one_entry(self) -> None:
        actor, both, write = audit_log.Actor(audit_log.Kind.USER, 1, "ada"), Barrier(2), audit_log.record

        def wait_and_write(*arguments: Any) -> None:
            # Both threads would be here if neither waited for the other.
            with suppress(BrokenBarrierError):
                both.wait(1)
            write(*arguments)

        def read() -> None:
            try:
                audit_log.record_once(actor, "response.read", "response resp_1", "p")
            finally:
                connections.close_all()

        with mock.patch.object(audit_log, "record", wait_and_write), ThreadPoolExecutor(2) as threads:
            for one in [threads.submit(read) for _ in range(2)]:
                one.result()
        self.assertEqual(entries("response.read"), [("ada", "response resp_1", "p", "success")])


class AuditAdminTest(TestCase):
    """The log in the admin, and entries for changes there."""

    def setUp(self) -> None:
        self.root = User.objects.create_superuser("root", "", "x")
        self.client.force_login(self.root)

    def test_changes_of_accounts_and_memberships(self) -> None:
        ada = User.objects.create_user("ada")
        self.client.post("/admin/responses_app/membership/add/", {"user": ada.pk, "project": "p", "role": 2})
        self.assertEqual(entries("membership.create"), [("root", "membership ada in p", "p", "success")])
        self.client.post(
            "/admin/responses_app/membership/",
            {"action": "delete_selected", "_selected_action": Membership.objects.get().pk, "post": "yes"},
        )
        self.assertEqual(len(entries("membership.delete")), 1)
        form = {
            "username": "ada",
            "is_superuser": "on",
            "is_active": "on",
            "date_joined_0": "2026-01-01",
            "date_joined_1": "00:00",
        }
        self.client.post(f"/admin/auth/user/{ada.pk}/change/", form)
        (entry,) = entries("account.change")
        self.assertIn("uperuser", entry[1])

    def test_changes_of_limits_are_those_of_their_project(self) -> None:
        self.client.post("/admin/responses_app/project/add/", {"name": "lab", "tokens_per_day": 1000})
        self.assertEqual(entries("project.create"), [("root", "project lab", "lab", "success")])

    def test_times_have_24_hours_seconds_and_the_time_zone(self) -> None:
        audit_log.record(audit_log.command(), "erase", "project p", "p")
        at = AuditEntry.objects.get(action="erase").at
        page = self.client.get("/admin/responses_app/auditentry/?action=erase")
        self.assertContains(page, f"{timezone.localtime(at):%Y-%m-%d %H:%M:%S %Z}</a>")

    def test_superusers_read_and_export_and_no_one_changes(self) -> None:
        audit_log.record(audit_log.command(), "erase", "=cmd()", "p")
        entry = AuditEntry.objects.get(action="erase")
        self.assertContains(self.client.get("/admin/responses_app/auditentry/?action=erase"), "=cmd()")
        self.assertEqual(self.client.post(f"/admin/responses_app/auditentry/{entry.pk}/delete/").status_code, 403)
        answer = self.client.post("/admin/responses_app/auditentry/", {"action": "export_csv", "_selected_action": entry.pk})
        self.assertIn("erase,'=cmd(),p,success", collect(answer).decode())
        staff = User.objects.create_user("staff", is_staff=True)
        self.client.force_login(staff)
        self.assertEqual(self.client.get("/admin/responses_app/auditentry/").status_code, 403)

    def test_a_search_takes_the_id_of_an_object_and_parts_of_names(self) -> None:
        audit_log.record(audit_log.Actor(audit_log.Kind.USER, 1, "ada"), "response.read", "response resp_12345", "Big lab")
        for words, number in (
            ("resp_12345", 1),
            ("response resp_123", 1),
            ("ada resp_12345", 1),
            ("Big lab", 1),
            ("account root", 1),
            ("resp_9", 0),
        ):
            with self.subTest(words=words):
                page = self.client.get("/admin/responses_app/auditentry/", {"q": words})
                self.assertEqual(page.context["cl"].result_count, number)

    def test_commands(self) -> None:
        call_command("createkey", "CI", stdout=StringIO())
        call_command("erase", "--project", "CI", "--keys", "--yes", stdout=StringIO())
        call_command("prune", stdout=StringIO())
        for action, text in (("key.create", "CI"), ("erase", "project CI"), ("prune", "temporary 10 minutes")):
            (entry,) = entries(action)
            self.assertIn(text, entry[1])
