"""Invisible characters are named on every page, and copied commands send the original text."""

from __future__ import annotations

import ast
import json
import re
import shlex
from html import unescape
from urllib.parse import quote

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Browser

from responses_app.models import ApiKey, Direction, Item
from responses_app.utils.invisible import SHOWN_BY_NAME, named
from responses_app.web.render.visible_pages import visible_page
from tests.support.server.serve_command import Server
from tests.support.web.page_case import WebCase, item, made

ODD = "a\u202eb\u200b\u2066\x9b\U000e0041c"


class VisiblePagesTest(WebCase):
    """Pages of a response with invisible characters in every text."""

    def setUp(self) -> None:
        super().setUp()
        self.row = made("resp_odd", model=f"m{ODD}", project="default", metadata={ODD: ODD})
        Item.objects.all().delete()
        item(self.row, "msg_odd", "message", Direction.INPUT, role="user", content=[{"type": "input_text", "text": ODD}])
        ApiKey.make(ODD, project=ODD)

    def test_no_page_has_one_raw(self) -> None:
        pages = ("/responses", "/responses/resp_odd", "/chat", "/chat/resp_odd", "/keys", "/admin/responses_app/response/")
        views = ("events", "wire", "prompt", "chain", "check", "events/0")
        searches = [f"/responses?q={quote(ODD)}&model={quote(ODD)}&meta={quote(ODD)}", f"/chat?q={quote(ODD)}"]
        admin = ["/admin/responses_app/apikey/", "/admin/responses_app/item/", f"/admin/responses_app/item/?q={quote(ODD)}"]
        for url in (*pages, *(f"/responses/resp_odd/{view}" for view in views), *searches, *admin):
            with self.subTest(url=url):
                answer = self.client.get(url, follow=True)
                self.assertEqual(answer.status_code, 200, url)
                self.assertIsNone(SHOWN_BY_NAME.search(answer.content.decode()), url)

    def test_a_title_names_them(self) -> None:
        self.assertIn(f"<title>{named(ODD)}", self.client.get("/chat/resp_odd").content.decode())

    def test_a_form_sends_back_what_was_searched(self) -> None:
        html = self.client.get(f"/chat?q={quote(ODD)}").content.decode()
        values = [unescape(value) for value in re.findall(r' name="q" value="([^"]*)"', html)]
        self.assertEqual(values, [ODD.replace("\x9b", "⟨U+009B⟩")])

    def test_a_name_that_holds_them_is_named_wherever_django_writes_it(self) -> None:
        User.objects.create_user(f"u{ODD}", password="x")
        html = self.client.get("/admin/auth/user/").content.decode()
        self.assertIn(named(f"u{ODD}"), html)

    def test_the_copied_commands_send_the_original_text(self) -> None:
        html = self.client.get("/responses/resp_odd/wire").content.decode()
        shown = {
            name: unescape("".join(re.findall(rf'<pre id="{name}" data-code="\w+">(.*?)</pre>', html, re.DOTALL)))
            for name in ("curl", "python")
        }
        self.assertFalse([text for text in shown.values() if SHOWN_BY_NAME.search(text)])
        words = shlex.split(shown["curl"].replace("\\\n", ""))
        body = json.loads(words[words.index("-d") + 1])
        self.assertEqual(body["input"][-1]["content"][0]["text"], ODD)
        call = ast.parse(shown["python"])
        self.assertIn(ODD, [node.value for node in ast.walk(call) if isinstance(node, ast.Constant)])


def test_a_page_without_them_is_left_alone() -> None:
    html = "<p>ä – 漢 👨‍👩‍👧</p>"
    assert visible_page(html) is html


@pytest.mark.browser
def test_scripts_name_the_same_characters(chat_server: Server, chromium: Browser) -> None:
    texts = [
        f"{before}{chr(code)}{after}"
        for code in (
            *range(0x300),
            *range(0x1100, 0x1200),
            *range(0x1780, 0x1830),
            *range(0x2000, 0x2100),
            *range(0xFE00, 0x10000),
            0x1F600,
            0x1BCA0,
            0x1D173,
            0xE0001,
            0xE0101,
        )
        for before, after in (("", ""), ("a", "b"), ("é", "é"), ("\ufe0f", ""), ("👨", "\u200d👩"))
    ]
    page = chromium.new_page()
    page.goto(f"{chat_server.url}/sign-in")
    script = "async (texts) => (({ visible }) => texts.map(visible))(await import('/static/web/visible.js'))"
    shown = page.evaluate(script, texts)
    page.close()
    assert [(text, one) for text, one in zip(texts, shown, strict=True) if one != named(text)] == []
