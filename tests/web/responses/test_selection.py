"""List of responses in a real browser: the sheet, the actions on checked rows, saved views, refused requests and the axis."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, Route, StorageState, expect

from tests.support import plain_http
from tests.support.server.serve_command import Server
from tests.support.waiting import wait_until
from tests.support.web.browser import opened_page

pytestmark = pytest.mark.browser


@pytest.fixture
def page(chat_server: Server, chromium: Browser, signed_in: StorageState) -> Iterator[Page]:
    """Open the list as a signed-in user, without an error until the end."""
    with opened_page(chromium, storage_state=signed_in, viewport={"width": 1440, "height": 900}) as page:
        yield page


@pytest.fixture(scope="module")
def pair(chat_server: Server) -> list[str]:
    """Return the ids of two responses."""
    return [chat_server.ask(model="chat", input=f"selected {word} twice").json()["id"] for word in ("first", "second")]


def test_click_on_a_row_opens_the_response_in_a_sheet(chat_server: Server, page: Page, pair: list[str]) -> None:
    page.goto(f"{chat_server.url}/responses?q=selected")
    rows = page.locator("#rows tbody tr")
    rows.nth(1).locator("td").last.click()
    sheet = page.get_by_role("dialog", name="Response")
    expect(sheet.locator("h1")).to_contain_text("selected first")
    expect(page).to_have_url(f"{chat_server.url}/responses?q=selected#{pair[0]}")
    page.keyboard.press("k")
    expect(sheet.locator("h1")).to_contain_text("selected second")
    page.reload()
    expect(sheet.locator("h1")).to_contain_text("selected second")
    page.keyboard.press("Escape")
    expect(sheet).to_have_count(0)
    expect(page).to_have_url(f"{chat_server.url}/responses?q=selected")


def test_a_row_looks_like_a_link_as_soon_as_a_click_opens_it(chat_server: Server, page: Page, pair: list[str]) -> None:
    scripts: list[Route] = []
    page.route("**/list.js", lambda route: scripts.append(route))
    page.goto(f"{chat_server.url}/responses?q=selected", wait_until="commit")
    row = page.locator("#rows tbody tr").first
    cell = row.locator("td").last
    cell.hover()
    expect(row).not_to_have_css("cursor", "pointer")
    expect(row).to_have_css("background-color", "rgba(0, 0, 0, 0)")
    expect(row.locator("a.open")).to_have_css("cursor", "pointer")
    wait_until(lambda: page.evaluate("true") and scripts)
    scripts[0].continue_()
    expect(cell).to_have_css("cursor", "pointer")
    expect(row).not_to_have_css("background-color", "rgba(0, 0, 0, 0)")
    cell.click()
    expect(page.get_by_role("dialog", name="Response")).to_be_visible()


def test_back_button_closes_the_sheet_and_stays_on_the_list(chat_server: Server, page: Page, pair: list[str]) -> None:
    page.goto(f"{chat_server.url}/keys")
    page.goto(f"{chat_server.url}/responses?q=selected")
    rows, sheet = page.locator("#rows tbody tr"), page.get_by_role("dialog", name="Response")
    rows.nth(1).locator("td").last.click()
    expect(sheet.locator("h1")).to_contain_text("selected first")
    page.keyboard.press("k")
    expect(sheet.locator("h1")).to_contain_text("selected second")
    page.go_back()
    expect(sheet).to_have_count(0)
    expect(page).to_have_url(f"{chat_server.url}/responses?q=selected")
    expect(rows.nth(0).locator("a.open")).to_be_focused()
    page.go_forward()
    expect(sheet.locator("h1")).to_contain_text("selected second")
    # Closing by another way leaves no entry behind.
    sheet.get_by_role("button", name="Close").click()
    expect(sheet).to_have_count(0)
    expect(page).to_have_url(f"{chat_server.url}/responses?q=selected")
    page.go_back()
    expect(page).to_have_url(f"{chat_server.url}/keys")


def test_checked_rows_are_compared_exported_and_deleted(chat_server: Server, page: Page, pair: list[str]) -> None:
    page.goto(f"{chat_server.url}/responses?q=selected")
    expect(page.get_by_role("button", name="Compare")).to_be_hidden()
    boxes = page.locator("#rows .pick input")
    boxes.nth(0).check()
    actions = page.get_by_role("form", name="Selected responses")
    expect(actions).to_contain_text("1 selected")
    expect(page.get_by_role("button", name="Compare")).to_be_disabled()
    page.get_by_role("button", name="Select all").click()
    expect(actions).to_contain_text("2 selected")
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_text("None of the checked responses is running.")).to_be_visible()
    boxes.nth(0).check()
    boxes.nth(1).check()
    with page.expect_download() as download:
        page.get_by_role("button", name="Export").click()
    lines = download.value.path().read_text().splitlines()
    assert [uid in line for uid, line in zip(pair, lines, strict=True)] == [True, True]
    page.get_by_role("button", name="Compare").click()
    expect(page).to_have_url(f"{chat_server.url}/responses/{pair[0]}/rerun?column={pair[1]}")
    expect(page.get_by_role("region", name="Response 2", exact=True)).to_be_visible()
    expect(page.get_by_role("heading", level=1)).to_have_text("Compare and rerun")
    expect(page.locator(".differences tr", has_text="input")).to_contain_text("selected second twice")
    extra = chat_server.ask(model="chat", input="disposable twice").json()["id"]
    page.goto(f"{chat_server.url}/responses?q=disposable")
    boxes.first.check()
    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Delete 1 response?")
    expect(page.locator("main li")).to_contain_text(re.compile(rf"disposable twice.*{extra}"))
    page.get_by_role("button", name="Delete").click()
    expect(page).to_have_url(f"{chat_server.url}/responses?q=disposable")
    expect(page.get_by_text("Deleted 1 response.")).to_be_visible()


def test_filters_are_saved_as_a_view_which_is_renamed_and_deleted(chat_server: Server, page: Page, pair: list[str]) -> None:
    page.goto(f"{chat_server.url}/responses?q=selected&status=completed")
    page.get_by_text("Save view").click()
    page.get_by_label("Name", exact=True).fill("Mine")
    page.get_by_role("button", name="Save", exact=True).click()
    views = page.get_by_role("group", name="Saved views")
    expect(views.get_by_role("link", name="Mine")).to_have_attribute("aria-current", "true")
    page.get_by_text("Rename view").click()
    expect(page.get_by_label("Name", exact=True)).to_have_value("Mine")
    page.get_by_label("Name", exact=True).fill("Of today")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(views.get_by_role("link", name="Mine")).to_have_count(0)
    page.goto(f"{chat_server.url}/responses")
    views.get_by_role("link", name="Of today").click()
    expect(page).to_have_url(f"{chat_server.url}/responses?q=selected&status=completed")
    expect(page.locator("#rows tbody tr")).to_have_count(len(pair))
    expect(page.locator(".axis li")).to_have_count(5)
    page.get_by_role("button", name="Delete the view Of today").click()
    expect(views.get_by_role("link", name="Of today")).to_have_count(0)


def test_refused_requests_are_rows(chat_server: Server, page: Page) -> None:
    url = f"{chat_server.url}/v1/responses"
    plain_http.post(url, json={"input": "x"}, headers={"Authorization": "Bearer sk-wrong"}, timeout=180)
    assert chat_server.ask(model="nobody", input="secret content").status_code == 400
    page.goto(f"{chat_server.url}/responses?status=refused&live=1")
    expect(page.locator("table.refused")).to_contain_text("model_not_found")
    page.goto(f"{chat_server.url}/responses")
    page.get_by_role("link", name="refused request").click()
    table = page.locator("table.refused")
    expect(table).to_contain_text("model_not_found")
    expect(table).to_contain_text("invalid_api_key")
    expect(table).to_contain_text("No valid key")
    expect(table).not_to_contain_text("secret content")


def test_refused_requests_stand_in_the_list_until_they_are_hidden(chat_server: Server, page: Page) -> None:
    uid = chat_server.ask(model="chat", input="greetings").json()["id"]
    assert chat_server.ask(model="nobody", input="x").status_code == 400
    page.goto(f"{chat_server.url}/responses?live=1")
    rows = page.locator("#rows tbody tr")
    expect(rows.first).to_contain_text("Refused 400")
    expect(rows.first).to_contain_text("model_not_found")
    # A click opens no sheet, and the keys go from response to response.
    rows.first.locator("td").last.click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.get_by_text("More filters").click()
    page.get_by_label("Hide refused requests").check()
    page.get_by_role("button", name="Search", exact=True).click()
    expect(page).to_have_url(f"{chat_server.url}/responses?live=1&refused=hide")
    expect(rows.first.locator("a.open")).to_have_attribute("href", f"/responses/{uid}")
    expect(page.locator("tr.refused")).to_have_count(0)
