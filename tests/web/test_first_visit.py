"""First visit in a real browser: home page, admin, response list, response and log."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.support.server.serve_command import Server
from tests.support.web.operator import sign_in_link

pytestmark = pytest.mark.browser
NAME, PASSWORD = "ada", "countess of lovelace"
# Every control that would change something, on a list or on the page of one row.
CHANGING = (
    "#content :is(input[name^=_save], .deletelink, .addlink, select[name=action], form[id$=_form] [name]:not([type=hidden]))"
)


def test_the_home_page_lists_the_served_models(chat_server: Server, page: Page) -> None:
    page.goto(chat_server.url)
    expect(page).to_have_title("Verbatim")
    expect(page.locator("main")).to_contain_text("chat Ready")
    expect(page.locator("main")).to_contain_text(f"curl {chat_server.url}/v1/responses")


def test_a_person_finds_a_response_and_reads_its_log(chat_server: Server, page: Page) -> None:
    uid = chat_server.ask(model="chat", input="greetings").json()["id"]
    chat_server.ask(model="chat", input="greetings")
    chat_server.manage("createsuperuser", "--noinput", "--username", NAME, "--email", "", DJANGO_SUPERUSER_PASSWORD=PASSWORD)
    page.goto(chat_server.url)
    page.get_by_role("main").get_by_role("link", name="Sign in").click()
    page.get_by_label("Username").fill(NAME)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.goto(f"{chat_server.url}/admin/responses_app/response/")

    page.locator("#searchbar").fill(uid)
    page.locator("#searchbar").press("Enter")
    rows = page.locator("#result_list tbody tr")
    expect(rows).to_have_count(1)
    rows.get_by_role("link", name=uid).click()
    expect(page.locator(".fieldBox.field-uid")).to_contain_text(uid)
    expect(page.locator(".fieldBox.field-status")).to_contain_text("Completed")
    expect(page.locator(CHANGING)).to_have_count(0)

    page.get_by_role("link", name="Open page").click()
    expect(page.get_by_role("main")).to_contain_text("Hello there!")
    page.get_by_role("tab", name="Events").click()
    expect(page.get_by_role("main")).to_contain_text("response.completed")


def test_a_link_of_the_command_signs_the_operator_in(chat_server: Server, page: Page) -> None:
    page.goto(chat_server.manage("signin", "--url", chat_server.url))
    expect(page.get_by_role("button", name="Sign out")).to_be_visible()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    page.goto(sign_in_link(chat_server))
    expect(page.get_by_role("button", name="Sign out")).to_be_visible()
