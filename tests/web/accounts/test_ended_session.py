"""Forms after the end of the session, or of an earlier session: nothing is stored, and the text is not lost."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import AsyncClient, Client
from playwright.sync_api import Browser, StorageState, expect

from responses_app.models import ApiKey
from responses_app.web.delivery import csp
from tests.support.server.serve_command import Server
from tests.support.web.browser import opened_page
from tests.support.web.page_case import WebCase


class EndedSessionTest(WebCase):
    """POST without a session."""

    def test_text_of_a_form_is_shown_and_sign_in_leads_back(self) -> None:
        fields = {"name": "<b>laptop</b>", "project": "p", "requests_per_minute": "", "csrfmiddlewaretoken": "token"}
        answer = Client().post("/keys", fields, headers={"referer": "http://testserver/keys?x=1&y=2"})
        self.assertContains(answer, "Nothing was stored or changed.", status_code=403)
        self.assertEqual(answer["Content-Security-Policy"], csp.POLICY)
        self.assertIn("no-store", answer["Cache-Control"])
        text = answer.content.decode()
        self.assertIn('<dt>Name</dt><dd dir="auto">&lt;b&gt;laptop&lt;/b&gt;</dd>', text)
        self.assertIn('href="/sign-in?next=%2Fkeys%3Fx%3D1%26y%3D2"', text)
        self.assertNotIn("token", text)
        self.assertNotIn("Requests per minute", text)
        self.assertFalse(ApiKey.objects.exists())

    def test_secrets_are_not_shown_and_other_sites_not_linked(self) -> None:
        fields = {"username": "ada", "password1": "countess", "password2": "countess"}
        answer = Client().post("/admin/auth/user/add/", fields, headers={"referer": "https://evil.example/keys"})
        self.assertContains(answer, '<dd dir="auto">ada</dd>', status_code=403)
        self.assertNotIn("countess", answer.content.decode())
        self.assertIn('href="/sign-in?next=%2Fadmin%2Fauth%2Fuser%2Fadd%2F"', answer.content.decode())

    def test_button_without_a_text_has_no_list(self) -> None:
        answer = Client().post("/responses/selection", {"uid": ["resp_1", "resp_2"], "action": "delete", "back": "/responses"})
        self.assertContains(answer, "Your session has ended", status_code=403)
        self.assertNotContains(answer, "<dl>", status_code=403)

    async def test_async_view_answers_alike(self) -> None:
        self.assertContains(await AsyncClient().post("/chat/presets", {"name": "x"}), "Nothing was stored", status_code=403)

    def test_sign_out_and_pages_still_lead_to_sign_in(self) -> None:
        self.assertRedirects(Client().get("/keys"), "/sign-in?next=/keys")
        self.assertRedirects(self.client.post("/sign-out"), "/sign-in")


class ExpiredFormTest(WebCase):
    """POST with the CSRF token of an earlier session."""

    def setUp(self) -> None:
        super().setUp()
        self.client = Client(enforce_csrf_checks=True)
        self.client.force_login(self.operator)
        self.client.cookies["csrftoken"] = "a" * 32

    def old_form(self, path: str, fields: dict[str, str], headers: dict[str, str] | None = None) -> Any:
        """Send a form with a token of another session from a page of this server."""
        sent = {"csrfmiddlewaretoken": "b" * 32, **fields}
        return self.client.post(path, sent, headers={"origin": "http://testserver", **(headers or {})})

    def test_form_from_before_a_sign_in_can_be_sent_again(self) -> None:
        fields = {"name": "<b>laptop</b>", "project": "p"}
        answer = self.old_form("/keys?x=1", fields, {"referer": "http://testserver/keys?x=1"})
        self.assertContains(answer, "This form has expired", status_code=403)
        self.assertIn("no-store", answer["Cache-Control"])
        text = answer.content.decode()
        self.assertIn('<form method="post" action="/keys?x=1">', text)
        self.assertIn('<input type="hidden" name="name" value="&lt;b&gt;laptop&lt;/b&gt;">', text)
        self.assertIn('<dt>Name</dt><dd dir="auto">&lt;b&gt;laptop&lt;/b&gt;</dd>', text)
        self.assertIn('href="/keys?x=1">Back to the page', text)
        self.assertNotIn("bbbb", text)
        self.assertFalse(ApiKey.objects.exists())

    def test_form_of_another_site_or_with_a_password_cannot_be_sent_again(self) -> None:
        cases: list[tuple[dict[str, str], dict[str, str]]] = [
            ({"name": "evil"}, {"origin": "https://evil.example"}),
            ({"name": "evil"}, {"origin": "null"}),
            ({"password1": "countess"}, {}),
        ]
        for fields, headers in cases:
            with self.subTest(fields=fields, headers=headers):
                answer = self.old_form("/keys", fields, headers)
                self.assertContains(answer, "This form has expired", status_code=403)
                for text in ("Send it now", "evil", "countess"):
                    self.assertNotContains(answer, text, status_code=403)

    def test_form_without_a_token_or_an_origin_cannot_be_sent_again(self) -> None:
        cases: list[tuple[dict[str, str], dict[str, str]]] = [
            ({"name": "x"}, {"origin": "http://testserver"}),
            ({"csrfmiddlewaretoken": "b" * 32}, {}),
        ]
        for sent, headers in cases:
            answer = self.client.post("/keys", sent, headers=headers)
            self.assertNotContains(answer, "Send it now", status_code=403)

    def test_old_sign_in_page_leads_on(self) -> None:
        fields = {"username": "root", "password": "x"}
        self.assertRedirects(self.old_form("/sign-in?next=/keys", fields), "/sign-in?next=/keys", target_status_code=302)
        self.client.logout()
        self.client.cookies["csrftoken"] = "a" * 32
        answer = self.old_form("/sign-in?next=/keys", fields)
        self.assertRedirects(answer, "/sign-in?next=/keys", fetch_redirect_response=False)
        self.assertContains(self.client.get("/sign-in?next=/keys"), "This page was out of date. Sign in now.")


@pytest.mark.browser
def test_form_of_a_tab_is_sent_after_a_sign_in_in_another(
    chat_server: Server, chromium: Browser, signed_in: StorageState
) -> None:
    with opened_page(chromium, "403", "Failed to load", storage_state=signed_in) as page:
        page.goto(f"{chat_server.url}/keys")
        page.get_by_label("Name", exact=True).fill("phone of Ada")
        # A sign-in gives new tokens.
        (token,) = (cookie for cookie in page.context.cookies() if "csrf" in cookie["name"])
        page.context.add_cookies([{"name": token["name"], "value": "c" * 32, "url": chat_server.url}])
        page.get_by_role("button", name="Create key").click()
        expect(page.get_by_role("main")).to_contain_text("phone of Ada")
        page.get_by_role("button", name="Send it now").click()
        expect(page).to_have_url(f"{chat_server.url}/keys")
        expect(page.get_by_text("New secret.")).to_be_visible()
        expect(page.get_by_role("link", name="phone of Ada", exact=True)).to_be_visible()


@pytest.mark.browser
def test_key_that_was_not_created_is_entered_again(chat_server: Server, chromium: Browser, signed_in: StorageState) -> None:
    with opened_page(chromium, "403", "Failed to load", storage_state=signed_in) as page:
        page.goto(f"{chat_server.url}/keys")
        page.get_by_label("Name", exact=True).fill("laptop of Ada")
        (session,) = (cookie for cookie in page.context.cookies() if "session" in cookie["name"])
        page.context.clear_cookies(name=session["name"])
        page.get_by_role("button", name="Create key").click()
        expect(page.get_by_role("main")).to_contain_text("Nothing was stored or changed.")
        expect(page.get_by_role("main")).to_contain_text("laptop of Ada")
        page.get_by_role("main").get_by_role("link", name="Sign in").click()
        page.context.add_cookies([{"name": session["name"], "value": session["value"], "url": chat_server.url}])
        page.goto(page.url)
        expect(page).to_have_url(f"{chat_server.url}/keys")
        expect(page.get_by_text("laptop of Ada")).to_have_count(0)
