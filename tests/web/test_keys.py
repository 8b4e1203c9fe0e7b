"""The key page: made with the secret shown once, renamed, revoked, last used; each for the projects of whoever looks."""

from __future__ import annotations

import re
from datetime import timedelta

from django.contrib.auth.models import User
from django.utils import timezone

from responses_app.models import ApiKey, Membership
from tests.api.case import ApiCase
from tests.web.case import WebCase


class KeysTest(WebCase):
    """With an operator, and with somebody who belongs to one project."""

    def test_a_key_is_made_and_its_secret_shown_once(self) -> None:
        page = self.client.post("/keys", {"name": "laptop", "project": "new one"}).content.decode()
        found = re.search(r"sk-[\w-]{43}", page)
        assert found
        key = ApiKey.find(found[0])
        assert key is not None
        self.assertEqual((key.name, key.project), ("laptop", "new one"))
        self.assertNotIn(found[0], self.page("/keys"))

    def test_it_is_renamed_and_revoked(self) -> None:
        key, secret = ApiKey.make("old", "p")
        self.assertRedirects(self.client.post(f"/keys/{key.pk}/rename", {"name": "new"}), "/keys")
        self.assertIn('value="new"', self.page("/keys"))
        self.client.post(f"/keys/{key.pk}/revoke")
        self.assertIsNone(ApiKey.find(secret))
        self.assertIn("revoked 20", self.page("/keys"))
        self.assertEqual(self.client.get(f"/keys/{key.pk}/revoke").status_code, 405)

    def test_people_have_the_keys_of_their_projects_alone(self) -> None:
        key, _ = ApiKey.make("theirs", "q")
        ada = User.objects.create_user("ada")
        Membership.objects.create(user=ada, project="p")
        self.client.force_login(ada)
        self.assertNotIn("theirs", self.page("/keys"))
        self.assertEqual(self.client.post(f"/keys/{key.pk}/revoke").status_code, 404)
        self.assertContains(self.client.post("/keys", {"name": "x", "project": "q"}), "do not belong")
        self.assertContains(self.client.post("/keys", {"name": "", "project": "p"}), "needs a name")
        self.client.post("/keys", {"name": "mine", "project": "p"})
        self.assertEqual(list(ApiKey.objects.exclude(pk=key.pk).values_list("name", "project")), [("mine", "p")])


class UsedTest(ApiCase):
    """When a key was used last."""

    async def test_it_is_remembered_to_the_minute(self) -> None:
        async with self.serving() as client:
            await client.get("/v1/models")
            first = (await ApiKey.objects.aget()).last_used_at
            assert first is not None
            self.setUp()
            await client.get("/v1/models")
            self.assertEqual((await ApiKey.objects.aget()).last_used_at, first)
            await ApiKey.objects.aupdate(last_used_at=timezone.now() - timedelta(minutes=2))
            self.setUp()
            await client.get("/v1/models")
            again = (await ApiKey.objects.aget()).last_used_at
            assert again is not None
            self.assertGreater(again, first)
