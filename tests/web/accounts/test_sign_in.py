"""Sign-in with a password or a one-time link, visible projects of a user, and the API key of a browser."""

from __future__ import annotations

import time
from base64 import urlsafe_b64decode
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from unittest import mock

from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.core import signing
from django.shortcuts import resolve_url
from django.test import Client, TestCase
from django.utils import timezone

from responses_app.access import api_keys, browser_key, permissions
from responses_app.models import ApiKey, AuditEntry, LoginAttempt, Membership, Role
from responses_app.observability.records import ObservedRequest, current_request
from responses_app.web.accounts import login_throttle, sign_in
from responses_app.web.delivery import csp
from tests.support.api.case import HELLO as GREETING
from tests.support.api.case import ApiCase, record_text


class LinkTest(TestCase):
    """The link of the operator."""

    def test_link_signs_in_the_operator_who_sees_everything(self) -> None:
        answer = self.client.get(sign_in.link(sign_in.operator()))
        self.assertRedirects(answer, resolve_url(settings.LOGIN_REDIRECT_URL), fetch_redirect_response=False)
        user = User.objects.get(pk=self.client.session["_auth_user_id"])
        self.assertEqual((user.username, user.is_superuser, user.has_usable_password()), ("operator", True, False))

    def test_link_works_once(self) -> None:
        link = sign_in.link(sign_in.operator())
        self.client.get(link)
        self.client.logout()
        self.assertContains(self.client.get(link, follow=True), "already used. Sign in below, or run manage.py signin")
        self.assertNotIn("_auth_user_id", self.client.session)
        self.client.get(sign_in.link(sign_in.operator()))
        self.assertIn("_auth_user_id", self.client.session)

    def test_link_ends_with_a_new_password(self) -> None:
        ada = User.objects.create_user("ada", password="countess of lovelace")
        link = sign_in.link(ada)
        ada.set_password("analytical engine")
        ada.save()
        self.assertContains(self.client.get(link, follow=True), "has expired or was already used")
        self.assertNotIn("_auth_user_id", self.client.session)
        self.client.get(sign_in.link(ada))
        self.assertEqual(self.client.session["_auth_user_id"], str(ada.pk))

    def test_used_link_says_nothing_to_a_signed_in_person(self) -> None:
        link = sign_in.link(sign_in.operator())
        self.client.get(link)
        answer = self.client.get(link, follow=True)
        self.assertRedirects(answer, resolve_url(settings.LOGIN_REDIRECT_URL))
        self.assertNotContains(answer, "already used")

    def test_link_expires(self) -> None:
        link = sign_in.link(sign_in.operator())
        with mock.patch.object(time, "time", return_value=time.time() + sign_in.VALID_SECONDS + 1):
            self.client.get(link)
        self.assertNotIn("_auth_user_id", self.client.session)

    def test_an_invalid_link_and_a_head_request_sign_no_user_in(self) -> None:
        link = sign_in.link(sign_in.operator())
        self.client.get("/sign-in/made-up")
        self.client.head(link)
        self.assertNotIn("_auth_user_id", self.client.session)
        self.client.get(link)
        self.assertIn("_auth_user_id", self.client.session)


class AccountTest(TestCase):
    """Names and passwords."""

    def test_a_person_comes_in_and_goes_out(self) -> None:
        User.objects.create_user("ada", password="countess of lovelace")
        self.assertContains(self.client.get("/sign-in"), "Password")
        self.client.post("/sign-in", {"username": "ada", "password": "wrong"})
        self.assertNotIn("_auth_user_id", self.client.session)
        self.client.post("/sign-in", {"username": "ada", "password": "countess of lovelace"})
        self.assertIn("_auth_user_id", self.client.session)
        self.assertEqual(self.client.get("/sign-out").status_code, 405)
        self.assertRedirects(self.client.post("/sign-out"), "/sign-in")
        self.assertNotIn("_auth_user_id", self.client.session)

    def test_after_five_wrong_passwords_even_the_right_one_has_to_wait(self) -> None:
        User.objects.create_user("ada", password="countess of lovelace")
        for _ in range(login_throttle.MAX_ATTEMPTS["pair"]):
            answer = self.client.post("/sign-in", {"username": "ada", "password": "wrong"})
            self.assertContains(answer, "Please enter a correct username and password")
        right = {"username": "ADA ", "password": "countess of lovelace"}
        answer = self.client.post("/sign-in", {**right, "username": "ada"})
        self.assertContains(answer, "Try again in 15 minutes", status_code=429)
        self.assertGreater(int(answer["Retry-After"]), 14 * 60)
        self.assertEqual(self.client.post("/sign-in", right).status_code, 429)
        # Neither from elsewhere nor for somebody else; and not when the time is over.
        self.assertEqual(self.client.post("/sign-in", {**right, "username": "ada"}, REMOTE_ADDR="10.1.1.1").status_code, 302)
        self.client.logout()
        LoginAttempt.objects.update(at=timezone.now() - login_throttle.WINDOW)
        self.assertEqual(self.client.post("/sign-in", {**right, "username": "ada"}).status_code, 302)
        self.assertFalse(LoginAttempt.objects.exists())

    def test_attempts_from_before_the_clock_was_set_back_do_not_count(self) -> None:
        User.objects.create_user("ada", password="countess of lovelace")
        wrong, right = ({"username": "ada", "password": text} for text in ("wrong", "countess of lovelace"))
        for _ in range(login_throttle.MAX_ATTEMPTS["pair"]):
            self.client.post("/sign-in", wrong)
        LoginAttempt.objects.update(at=timezone.now() + timedelta(days=1))
        self.assertEqual(self.client.post("/sign-in", right).status_code, 302)

    def test_many_names_from_one_address_and_one_name_from_many_are_too_many(self) -> None:
        wrong = {"username": "ada", "password": "wrong"}
        with mock.patch.dict(login_throttle.MAX_ATTEMPTS, {"address": 3, "account": 3}):
            for number in range(3):
                self.client.post("/sign-in", {**wrong, "username": f"n{number}"}, REMOTE_ADDR="10.1.1.1")
                self.client.post("/sign-in", wrong, REMOTE_ADDR=f"10.2.2.{number}")
            self.assertEqual(self.client.post("/sign-in", wrong, REMOTE_ADDR="10.1.1.1").status_code, 429)
            self.assertEqual(self.client.post("/sign-in", wrong, REMOTE_ADDR="10.3.3.3").status_code, 429)

    def test_the_right_password_forgets_the_wrong_ones_of_this_address(self) -> None:
        User.objects.create_user("ada", password="countess of lovelace")
        for _ in range(2):
            for _ in range(login_throttle.MAX_ATTEMPTS["pair"] - 1):
                self.client.post("/sign-in", {"username": "ada", "password": "wrong"})
            self.assertEqual(
                self.client.post("/sign-in", {"username": "ada", "password": "countess of lovelace"}).status_code, 302
            )
            self.client.logout()

    def test_the_admin_has_the_same_door(self) -> None:
        self.assertRedirects(self.client.get("/admin/", follow=True), "/sign-in?next=/admin/", 302, 200)
        self.client.force_login(User.objects.create_user("ada"))
        self.assertEqual(self.client.get("/admin/", follow=True).status_code, 403)
        self.client.force_login(User.objects.create_superuser("root"))
        self.assertEqual(self.client.get("/admin/").status_code, 200)

    def test_pages_have_a_policy_and_nothing_inline(self) -> None:
        answer = self.client.get("/sign-in")
        self.assertEqual(answer["Content-Security-Policy"], csp.POLICY)
        self.assertNotIn("unsafe", csp.POLICY)
        self.assertNotRegex(answer.content.decode(), r"<script(?![^>]*\ssrc=)|<style|\sstyle=|\son\w+=")


class MembershipTest(TestCase):
    """Visible projects of members and superusers."""

    def test_people_see_their_projects_and_superusers_all(self) -> None:
        ada, root = User.objects.create_user("ada"), User.objects.create_superuser("root")
        ApiKey.make("zoo")
        Membership.objects.create(user=ada, project="p")
        self.assertEqual(permissions.projects(ada), ["p"])
        self.assertEqual(permissions.projects(root), ["default", "p", "zoo"])
        self.assertTrue(permissions.has_role(ada, "p", Role.MEMBER))
        self.assertFalse(permissions.has_role(ada, "q", Role.VIEWER))
        self.assertTrue(permissions.has_role(root, "q", Role.ADMIN))
        ada.is_active = False
        self.assertEqual((permissions.projects(ada), permissions.has_role(ada, "p", Role.VIEWER)), ([], False))


class BrowserKeyTest(ApiCase):
    """API key of a browser for a project of the signed-in user."""

    def setUp(self) -> None:
        super().setUp()
        self.ada = User.objects.create_user("ada")
        self.membership = Membership.objects.create(user=self.ada, project="test")

    def signed_in(self) -> tuple[Client, str]:
        """Sign ada in. Return the client and the API key of the chat page."""
        browser = Client()
        self.ada.set_password("countess of lovelace")
        self.ada.save()
        browser.post("/sign-in", {"username": "ada", "password": "countess of lovelace"})
        answer = browser.get("/chat/secret?project=test")
        self.assertEqual(answer.status_code, 200)
        return browser, answer.json()["secret"]

    async def status(self, client: Any, secret: str) -> int:
        """Return the status of an API request with `secret`."""
        client.secret = secret
        return int((await client.get("/v1/models")).status_code)

    async def test_browser_key_works_for_its_project_without_a_row(self) -> None:
        _, secret = await sync_to_async(self.signed_in)()
        record = ObservedRequest("POST", "/v1/responses")
        async with self.serving(record_text(GREETING)) as client:
            client.secret = secret
            current_request.set(record)
            made = await self.made(client)
            current_request.set(None)
            client.secret = self.secret
            self.assertEqual((await client.get(f"/v1/responses/{made['id']}")).status_code, 200)
        self.assertEqual(await ApiKey.objects.acount(), 1)
        line = (record.response_id, record.project, record.key_id, record.user_id)
        self.assertEqual(line, (made["id"], "test", None, self.ada.pk), "the log names the person in place of a key")

    async def test_a_deletion_with_a_browser_key_is_an_entry_of_the_person(self) -> None:
        _, secret = await sync_to_async(self.signed_in)()
        async with self.serving(record_text(GREETING)) as client:
            client.secret = secret
            path = f"/v1/responses/{(await self.made(client))['id']}"
            self.assertEqual((await client.delete(path)).status_code, 200)
        entry = await AuditEntry.objects.aget(action="api.delete")
        self.assertEqual((entry.actor_kind, entry.actor_id, entry.object), ("user", self.ada.pk, path))

    async def test_expired_or_forged_browser_key_is_refused(self) -> None:
        _, secret = await sync_to_async(self.signed_in)()
        late = time.time() + browser_key.VALID_SECONDS + 1
        async with self.serving() as client:
            self.assertEqual(await self.status(client, secret[:-1] + ("A" if secret[-1] != "A" else "B")), 401)
            with mock.patch.object(time, "time", return_value=late):
                self.assertEqual(await self.status(client, secret), 401)
            of_before = browser_key.PREFIX + signing.dumps([self.ada.pk, "test"], salt=browser_key.SALT)
            self.assertEqual(await self.status(client, of_before), 401)

    async def test_browser_key_does_not_reveal_the_session_key(self) -> None:
        browser, secret = await sync_to_async(self.signed_in)()
        session_key = browser.cookies[settings.SESSION_COOKIE_NAME].value
        payload = secret.removeprefix(browser_key.PREFIX).split(":")[0]
        result = urlsafe_b64decode(payload + "=" * (-len(payload) % 4)).decode()
        self.assertNotIn(session_key, result)
        self.assertNotIn(session_key, secret)

    async def test_browser_key_ends_with_session_password_account_or_membership(self) -> None:
        def new_password(_browser: Client) -> None:
            self.ada.set_password("another one")
            self.ada.save()

        def deactivate(_browser: Client) -> None:
            self.ada.is_active = False
            self.ada.save()

        def delete_sessions(_browser: Client) -> None:
            Session.objects.all().delete()
            api_keys.clear_cache()

        def expire_sessions(_browser: Client) -> None:
            Session.objects.update(expire_date=timezone.now())
            api_keys.clear_cache()

        ends: dict[str, Callable[[Client], object]] = {
            "sign out": lambda browser: browser.post("/sign-out"),
            "new password": new_password,
            "session deleted": delete_sessions,
            "session expired": expire_sessions,
            "left the project": lambda _browser: self.membership.delete(),
            "inactive": deactivate,
        }
        async with self.serving() as client:
            for name, end in ends.items():
                with self.subTest(name):
                    browser, secret = await sync_to_async(self.signed_in)()
                    self.assertEqual(await self.status(client, secret), 200)
                    await sync_to_async(end)(browser)
                    self.assertEqual(await self.status(client, secret), 401)
                    self.membership, _ = await Membership.objects.aget_or_create(user=self.ada, project="test")

    async def test_another_session_of_the_same_person_goes_on(self) -> None:
        first, secret = await sync_to_async(self.signed_in)()
        second = await sync_to_async(lambda: first.get("/chat/secret?project=test").json()["secret"])()
        other = Client()
        await sync_to_async(other.force_login)(self.ada)
        stored = await sync_to_async(lambda: other.get("/chat/secret?project=test").json()["secret"])()
        async with self.serving() as client:
            await sync_to_async(first.post)("/sign-out")
            self.assertEqual([await self.status(client, one) for one in (secret, second, stored)], [401, 401, 200])

    async def test_another_process_forgets_it_within_seconds(self) -> None:
        _, secret = await sync_to_async(self.signed_in)()
        async with self.serving() as client:
            self.assertEqual(await self.status(client, secret), 200)
            # The signals of a sign-out in another process are not heard here.
            await Session.objects.all().adelete()
            self.assertEqual(await self.status(client, secret), 200)
            later = time.monotonic() + api_keys.BROWSER_CACHE_S
            with mock.patch.object(time, "monotonic", return_value=later):
                self.assertEqual(await self.status(client, secret), 401)
        self.assertLessEqual(api_keys.BROWSER_CACHE_S, 10)
