"""Requests of the API that make an entry in the audit log."""

from __future__ import annotations

from responses_app.models import AuditEntry
from tests.support.api.case import HELLO, ApiCase, record_text

HOOK = {"name": "hook", "url": "https://example.com/hook", "event_types": ["response.completed"]}


class AuditedRequestsTest(ApiCase):
    """Deletions, and changes of webhook endpoints."""

    async def test_deletions_and_webhooks_are_recorded_and_other_requests_are_not(self) -> None:
        async with self.serving(record_text(HELLO)) as client:
            uid = (await self.post(client)).json()["id"]
            await client.get(f"/v1/responses/{uid}")
            self.assertEqual((await client.delete("/v1/responses/resp_none")).status_code, 404)
            self.assertEqual((await client.delete(f"/v1/responses/{uid}")).status_code, 200)
            made = await client.post("/v1/webhook_endpoints", HOOK, content_type="application/json")
            self.assertEqual(made.status_code, 200, made.content)
        entries = [
            (entry.action, entry.object, entry.actor_kind, entry.actor_id, entry.project, entry.address)
            async for entry in AuditEntry.objects.order_by("pk")
        ]
        who = ("key", self.key.pk, self.key.project, "127.0.0.1")
        self.assertEqual(
            entries,
            [("api.delete", f"/v1/responses/{uid}", *who), ("webhook.change", "/v1/webhook_endpoints", *who)],
        )
