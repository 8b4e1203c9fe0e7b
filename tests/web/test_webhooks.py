"""Webhook pages: an endpoint with the secret shown once, deliveries, a resend, and projects of others."""

from __future__ import annotations

import re
from datetime import timedelta

from django.contrib.auth.models import User
from django.utils import timezone

from responses_app.models import Membership, Role, WebhookDelivery, WebhookEndpoint
from responses_app.store import webhooks
from responses_app.webhooks.endpoints import new_endpoint
from responses_app.webhooks.signatures import signing_secrets
from tests.support.web.page_case import WebCase

FORM = {"name": "hook", "url": "https://example.com/", "project": "default", "event_types": ["response.completed"]}


def make_endpoint(project: str = "default", name: str = "hook") -> WebhookEndpoint:
    row, _ = new_endpoint(project, name=name, url="https://example.com/<b>", event_types=["response.failed"])
    webhooks.create(row)
    return row


def make_delivery(endpoint: WebhookEndpoint, **fields: object) -> WebhookDelivery:
    now = timezone.now()
    values = {
        "uid": "wh_1",
        "event_type": "response.failed",
        "response_uid": "resp_1",
        "created_at": now,
        "due_at": now,
        **fields,
    }
    return WebhookDelivery.objects.create(event_uid="evt_1", endpoint=endpoint, **values)


class WebhooksTest(WebCase):
    """Pages for a superuser and for a member of a project."""

    def test_an_endpoint_is_made_and_its_secret_shown_once(self) -> None:
        self.assertRedirects(self.client.post("/webhooks", FORM), "/webhooks", fetch_redirect_response=False)
        match = re.search(r"whsec_[\w+/=]{44}", self.page("/webhooks"))
        assert match
        endpoint = WebhookEndpoint.objects.get()
        self.assertEqual(signing_secrets(endpoint, timezone.now()), [match[0]])
        self.assertNotIn(match[0], self.page("/webhooks"))

    def test_a_wrong_endpoint_is_an_error(self) -> None:
        for field, value, message in (
            ("url", "http://example.com", "Expected the https URL"),
            ("name", "", "This field is required"),
            ("project", "nowhere", "Select a valid choice"),
            ("event_types", [], "Events: This field is required"),
        ):
            with self.subTest(field):
                self.assertContains(self.client.post("/webhooks", {**FORM, field: value}), message)
        self.assertFalse(WebhookEndpoint.objects.exists())

    def test_endpoints_of_a_project_are_limited(self) -> None:
        for _ in range(webhooks.MAX_ENDPOINTS_PER_PROJECT):
            make_endpoint()
        self.assertContains(self.client.post("/webhooks", FORM), "which is the limit")

    def test_deliveries_are_listed_and_sent_again(self) -> None:
        endpoint = make_endpoint(name="<i>hook</i>")
        row = make_delivery(endpoint, status="failed", attempts=8, error="No answer: <script>")
        page = self.page(f"/webhooks/{endpoint.uid}")
        for text in ("&lt;i&gt;hook&lt;/i&gt;", "Failed", "No answer: &lt;script&gt;", "/responses/resp_1", "Send again"):
            with self.subTest(text):
                self.assertIn(text, page)
        self.client.post(f"/webhooks/{endpoint.uid}/deliveries/{row.pk}/resend")
        row.refresh_from_db()
        self.assertEqual((row.status, row.attempts), ("pending", 0))
        self.assertNotIn("Send again", self.page(f"/webhooks/{endpoint.uid}"))

    def test_an_endpoint_whose_deliveries_fail_shows_it_and_sends_at_once(self) -> None:
        endpoint = make_endpoint()
        self.assertNotIn("last delivery failed", self.page("/webhooks"))
        later = timezone.now() + timedelta(hours=1)
        row = make_delivery(endpoint, attempts=2, status_code=500, due_at=later)
        self.assertIn("last delivery failed", self.page("/webhooks"))
        page = self.page(f"/webhooks/{endpoint.uid}")
        self.assertIn("Failing", page)
        self.assertIn("Send now", page)
        self.client.post(f"/webhooks/{endpoint.uid}/deliveries/{row.pk}/resend")
        row.refresh_from_db()
        self.assertEqual((row.status, row.attempts), ("pending", 2))
        self.assertLess(row.due_at, later)
        make_delivery(endpoint, uid="wh_2", status="delivered", attempts=1)
        self.assertNotIn("last delivery failed", self.page("/webhooks"))

    def test_a_new_secret_is_shown_once_and_the_former_is_valid_for_a_day(self) -> None:
        endpoint = make_endpoint()
        self.client.post(f"/webhooks/{endpoint.uid}")
        match = re.search(r"whsec_[\w+/=]{44}", self.page(f"/webhooks/{endpoint.uid}"))
        assert match
        endpoint.refresh_from_db()
        now = timezone.now()
        self.assertEqual(len(signing_secrets(endpoint, now)), 2)
        self.assertEqual(signing_secrets(endpoint, now + timedelta(hours=25)), [match[0]])
        self.assertNotIn(match[0], self.page(f"/webhooks/{endpoint.uid}"))

    def test_a_second_new_secret_ends_the_former_one_only_when_confirmed(self) -> None:
        endpoint = make_endpoint()
        path = f"/webhooks/{endpoint.uid}"
        self.client.post(path)
        endpoint.refresh_from_db()
        secrets = signing_secrets(endpoint, timezone.now())
        # A double click.
        self.client.post(path)
        page = self.page(path)
        endpoint.refresh_from_db()
        self.assertEqual(signing_secrets(endpoint, timezone.now()), secrets)
        for text in ("The secret was not changed", "ends the former one at once", "the former one is valid until"):
            self.assertIn(text, page)
        self.client.post(path, {"end_old": "1"})
        endpoint.refresh_from_db()
        newest, former = signing_secrets(endpoint, timezone.now())
        self.assertEqual(former, secrets[0])
        self.assertNotIn(newest, secrets)
        WebhookEndpoint.objects.update(old_secret_until=timezone.now())
        self.assertNotIn("the former one", self.page(path))

    def test_an_endpoint_is_deleted_after_a_confirmation(self) -> None:
        endpoint = make_endpoint()
        self.assertIn("can’t be undone", self.page(f"/webhooks/{endpoint.uid}/delete"))
        self.assertRedirects(self.client.post(f"/webhooks/{endpoint.uid}/delete"), "/webhooks")
        self.assertFalse(WebhookEndpoint.objects.exists())

    def test_changes_are_in_the_audit_log(self) -> None:
        self.client.post("/webhooks", FORM)
        uid = WebhookEndpoint.objects.get().uid
        self.client.post(f"/webhooks/{uid}")
        # Refused, as the secret before is still valid.
        self.client.post(f"/webhooks/{uid}")
        self.client.post(f"/webhooks/{uid}/delete")
        changes = [(action, f"webhook endpoint {uid}") for action in ("webhook.change", "webhook.change", "webhook.delete")]
        self.assertEqual(self.audited("webhook.change", "webhook.delete"), changes)

    def test_people_have_the_endpoints_of_their_projects_alone(self) -> None:
        theirs, ada = make_endpoint("q", "theirs"), User.objects.create_user("ada")
        row = make_delivery(theirs)
        Membership.objects.create(user=ada, project="p", role=Role.ADMIN)
        self.client.force_login(ada)
        self.assertNotIn("theirs", self.page("/webhooks"))
        for path in ("", "/delete", f"/deliveries/{row.pk}/resend"):
            with self.subTest(path=path):
                self.assertEqual(self.client.post(f"/webhooks/{theirs.uid}{path}").status_code, 404)
        self.assertContains(self.client.post("/webhooks", {**FORM, "project": "q"}), "Select a valid choice")
