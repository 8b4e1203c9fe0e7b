"""Page of a 503 in a real browser: the asked page comes once the database is back."""

from __future__ import annotations

import pytest
from django.template import loader
from playwright.sync_api import Browser, Route, StorageState, expect

from tests.support.server.serve_command import Server
from tests.support.web.browser import opened_page

pytestmark = pytest.mark.browser


def test_page_comes_by_itself_when_the_database_is_back(
    chat_server: Server, chromium: Browser, signed_in: StorageState
) -> None:
    answers: list[str] = []
    html = loader.get_template("503.html").render({"waits": True, "remedy": "This page loads by itself."})

    def be_away(route: Route) -> None:
        """Answer the first three requests as a server without a database does."""
        answers.append(route.request.method)
        if len(answers) > 3:
            route.continue_()
        else:
            route.fulfill(status=503, content_type="text/html", body=html)

    with opened_page(chromium, "503", "Failed to load", storage_state=signed_in) as page:
        page.route("**/keys?x=1", be_away)
        page.goto(f"{chat_server.url}/keys?x=1")
        expect(page.get_by_role("heading", level=1)).to_have_text("The database doesn’t answer")
        expect(page.get_by_role("button", name="Create key")).to_be_visible()
        assert answers == ["GET", "HEAD", "HEAD", "HEAD", "GET"]
