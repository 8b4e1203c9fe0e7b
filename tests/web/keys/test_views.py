"""Key pages: create with the secret shown once, rename, revoke, last use; only for projects of the user."""

from __future__ import annotations

import re
import time
from datetime import timedelta
from unittest import mock

from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.utils import timezone

from responses_app.access import api_keys
from responses_app.models import ApiKey, Membership
from responses_app.runs import manager
from responses_app.web.keys import new_secret
from tests.support.api.case import ApiCase
from tests.support.web.page_case import WebCase, text_of


class KeysTest(WebCase):
    """Key pages for a superuser and for a member of a project."""

    def test_a_key_is_made_and_its_secret_shown_once(self) -> None:
        answer = self.client.post("/keys", {"name": "laptop", "project": "new one"})
        self.assertRedirects(answer, "/keys", fetch_redirect_response=False)
        stored = Session.objects.get().session_data
        self.assertNotIn("sk-", str(Session.objects.get().get_decoded()))
        shown = self.page("/keys")
        self.assertIn("laptop was created.", shown)
        match = re.search(r"sk-[\w-]{43}", shown)
        assert match
        key = ApiKey.find(match[0])
        assert key is not None
        self.assertEqual((key.name, key.project), ("laptop", "new one"))
        # Loaded again, the page neither shows it nor creates another.
        self.assertNotIn(match[0], self.page("/keys"))
        self.assertEqual(ApiKey.objects.count(), 1)
        self.assertNotEqual(Session.objects.get().session_data, stored)

    def test_second_click_does_not_end_the_secret_in_use(self) -> None:
        key, used = ApiKey.make("laptop", "p")
        path = f"/keys/{key.pk}/rotate"
        self.assertNotIn("end_old", self.page(path))
        for _ in range(2):
            self.client.post(path, {"hours": "24"})
        shown = self.page("/keys")
        self.assertIn("The secret was not changed again", shown)
        match = re.search(r"sk-[\w-]{43}", shown)
        assert match
        self.assertEqual([ApiKey.find(secret) for secret in (used, match[0])], [key, key])
        self.assertIn('name="end_old"', self.page(path))
        self.client.post(path, {"hours": "24", "end_old": "1"})
        self.assertEqual([ApiKey.find(secret) for secret in (used, match[0])], [None, key])

    def test_an_unseen_secret_expires(self) -> None:
        self.client.post("/keys", {"name": "laptop", "project": "p"})
        late = time.time() + new_secret.VALID_SECONDS + 1
        with mock.patch("cryptography.fernet.time.time", return_value=late):
            self.assertIsNone(re.search(r"sk-[\w-]{43}", self.page("/keys")))

    def test_key_is_created_with_limits_that_change_one_by_one(self) -> None:
        with mock.patch.object(manager, "current", return_value=mock.Mock(served={"m": None, "n": None})):
            fields = {"name": "k", "project": "p", "requests_per_minute": "60", "max_concurrent": "", "allowed_models": ["m"]}
            self.client.post("/keys", {**fields, "tokens_per_day": "100000", "expires_at": "2036-11-28T12:30"})
            key = ApiKey.objects.get()
            self.assertEqual((key.requests_per_minute, key.max_concurrent, key.allowed_models), (60, None, ["m"]))
            shown = text_of(self.page("/keys"))
            self.assertIn("60 per minute, 100,000 tokens per day, m, expires 2036-11-28 12:30 ", shown)
            page = self.page(f"/keys/{key.pk}")
            for fragment in (
                'value="60"',
                'value="2036-11-28T12:30"',
                f'href="/keys/{key.pk}/rotate"',
                f'href="/keys/{key.pk}/revoke"',
            ):
                self.assertIn(fragment, page)
            ApiKey.objects.update(revoked_at=timezone.now())
            self.assertRedirects(self.client.post(f"/keys/{key.pk}", {"name": "new", "max_concurrent": "2"}), "/keys")
        key.refresh_from_db()
        self.assertEqual((key.name, key.requests_per_minute, key.max_concurrent, key.allowed_models), ("new", None, 2, []))
        self.assertIsNotNone(key.revoked_at)

    def test_an_expired_key_is_renamed(self) -> None:
        expired = timezone.now() - timedelta(days=1)
        key, _ = ApiKey.make("k", "p", expires_at=expired)
        shown = expired.strftime("%Y-%m-%dT%H:%M")
        self.client.post(f"/keys/{key.pk}", {"name": "new", "expires_at": shown})
        key.refresh_from_db()
        self.assertEqual(key.name, "new")

    def test_an_invalid_limit_is_an_error_and_creates_no_key(self) -> None:
        for field, value, message in (
            ("requests_per_minute", "0", "greater than or equal to 1"),
            ("requests_per_minute", "-1", "greater than or equal to 1"),
            ("tokens_per_day", "-1", "greater than or equal to 1"),
            ("max_output_tokens", "-1", "greater than or equal to 16"),
            ("requests_per_minute", "many", "Enter a whole number"),
            ("expires_at", "1999-01-01T00:00", "This time is in the past"),
            ("max_concurrent", "10001", "less than or equal to 10000"),
            ("allowed_models", "unknown", "not one of the available choices"),
            ("name", "a\0b", "Null characters"),
        ):
            with self.subTest(field=field, value=value, message=message):
                answer = self.client.post("/keys", {"name": "k", "project": "p", field: value})
                self.assertContains(answer, message)
        self.assertFalse(ApiKey.objects.exists())

    def test_key_is_renamed_and_revoked(self) -> None:
        key, secret = ApiKey.make("old", "p")
        self.assertRedirects(self.client.post(f"/keys/{key.pk}", {"name": "new"}), "/keys")
        self.assertIn(">new</a>", self.page("/keys"))
        self.assertContains(self.client.post(f"/keys/{key.pk}", {"name": ""}), "This field is required")
        self.assertIn("can’t be undone", self.page(f"/keys/{key.pk}/revoke"))
        self.assertIsNotNone(ApiKey.find(secret))
        self.assertRedirects(self.client.post(f"/keys/{key.pk}/revoke"), "/keys")
        self.assertIsNone(ApiKey.find(secret))
        self.assertIn("Revoked <time", self.page("/keys"))
        self.assertRedirects(self.client.get(f"/keys/{key.pk}/revoke"), "/keys")

    def test_revoked_keys_are_listed_last(self) -> None:
        old, _ = ApiKey.make("old", "a")
        ApiKey.objects.filter(pk=old.pk).update(revoked_at=timezone.now())
        ApiKey.make("new", "b")
        page = self.page("/keys")
        self.assertLess(page.index(">new</a>"), page.index(">old</a>"))

    def test_people_have_the_keys_of_their_projects_alone(self) -> None:
        key, _ = ApiKey.make("theirs", "q")
        ada = User.objects.create_user("ada")
        Membership.objects.create(user=ada, project="p")
        self.client.force_login(ada)
        self.assertNotIn("theirs", self.page("/keys"))
        for path in ("", "/revoke"):
            with self.subTest(path=path):
                self.assertEqual(self.client.post(f"/keys/{key.pk}{path}").status_code, 404)
        self.assertContains(
            self.client.post("/keys", {"name": "x", "project": "q"}), "You need the role “member” in this project."
        )
        self.assertContains(self.client.post("/keys", {"name": "", "project": "p"}), "Name: This field is required")
        self.client.post("/keys", {"name": "mine", "project": "p"})
        self.assertEqual(list(ApiKey.objects.exclude(pk=key.pk).values_list("name", "project")), [("mine", "p")])


class UsedTest(ApiCase):
    """Record of the last use of a key."""

    async def test_last_use_is_stored_to_the_minute(self) -> None:
        async with self.serving() as client:
            await client.get("/v1/models")
            first = (await ApiKey.objects.aget()).last_used_at
            assert first is not None
            api_keys.clear_cache()
            await client.get("/v1/models")
            self.assertEqual((await ApiKey.objects.aget()).last_used_at, first)
            await ApiKey.objects.aupdate(last_used_at=timezone.now() - timedelta(minutes=2))
            api_keys.clear_cache()
            await client.get("/v1/models")
            again = (await ApiKey.objects.aget()).last_used_at
            assert again is not None
            self.assertGreater(again, first)
