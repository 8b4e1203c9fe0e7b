"""Expiry dates of keys, and two secrets of a key during a rotation."""

from __future__ import annotations

from datetime import timedelta

from asgiref.sync import sync_to_async
from django.utils import timezone

from responses_app.access import api_keys
from responses_app.models import ApiKey, Item, Project, Response
from responses_app.store.log.retention import prune_by_limits
from tests.support.api.case import HELLO, ApiCase, KeyedClient, record_text


class KeyExpiryTest(ApiCase):
    """A key that expires, and a key with a new secret."""

    async def status(self, secret: str) -> int:
        """Return the status of a request with `secret`."""
        api_keys.clear_cache()
        answer = await KeyedClient(secret).get("/v1/models")
        return int(answer.status_code)

    async def test_expired_key_is_refused_with_the_date(self) -> None:
        async with self.serving() as client:
            await ApiKey.objects.filter(pk=self.key.pk).aupdate(expires_at=timezone.now() + timedelta(minutes=1))
            self.assertEqual(await self.status(self.secret), 200)
            await ApiKey.objects.filter(pk=self.key.pk).aupdate(expires_at=timezone.now() - timedelta(minutes=1))
            api_keys.clear_cache()
            self.refused(await client.get("/v1/models"), 401, "invalid_api_key", None, "The API key 'test' expired at")

    async def test_both_secrets_are_valid_until_the_chosen_time(self) -> None:
        async with self.serving() as client:
            secret = await sync_to_async(self.key.rotate)(timezone.now() + timedelta(hours=1))
            self.assertEqual([await self.status(self.secret), await self.status(secret)], [200, 200])
            await ApiKey.objects.filter(pk=self.key.pk).aupdate(old_valid_until=timezone.now() - timedelta(hours=1))
            self.assertEqual(await self.status(secret), 200)
            api_keys.clear_cache()
            self.refused(await client.get("/v1/models"), 401, "invalid_api_key", None, "Use the new one")
            await ApiKey.objects.filter(pk=self.key.pk).aupdate(revoked_at=timezone.now())
            self.assertEqual([await self.status(self.secret), await self.status(secret)], [401, 401])

    async def test_responses_are_erased_after_the_shorter_retention(self) -> None:
        async with self.serving(record_text(HELLO)) as client:
            await self.made(client)
        later = timezone.now() + timedelta(days=3)
        await ApiKey.objects.filter(pk=self.key.pk).aupdate(retention_days=4)
        await sync_to_async(lambda: list(prune_by_limits(later)))()
        self.assertEqual(await Response.objects.acount(), 1)
        await Project.objects.acreate(name=self.key.project, retention_days=2)
        await sync_to_async(lambda: list(prune_by_limits(later)))()
        self.assertEqual(await Response.objects.acount(), 0)

    async def test_retention_of_a_project_erases_items_of_deleted_conversations(self) -> None:
        await Project.objects.acreate(name=self.key.project, retention_days=2)
        later = timezone.now() + timedelta(days=3)
        async with self.serving(record_text(HELLO)) as client:
            conversation = (await client.post("/v1/conversations", {}, content_type="application/json")).json()["id"]
            await self.made(client, conversation=conversation)
            await sync_to_async(lambda: list(prune_by_limits(later)))()
            self.assertEqual([await Response.objects.acount(), await Item.objects.acount()], [0, 2])
            await client.delete(f"/v1/conversations/{conversation}")
        await sync_to_async(lambda: list(prune_by_limits(timezone.now())))()
        self.assertEqual(await Item.objects.acount(), 2)
        await sync_to_async(lambda: list(prune_by_limits(later)))()
        self.assertEqual(await Item.objects.acount(), 0)
