"""Admin in the browser: the header of the pages, weight, layout shift and accessibility of a list."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import Response, expect

from tests.support.server.serve_command import Server
from tests.support.web.axe import violations_on_screens
from tests.support.web.chat_visitor import Visitor

pytestmark = pytest.mark.browser
LISTS = ("response", "apikey", "conversation", "item", "membership", "auditentry", "webhookendpoint", "webhookdelivery")
LARGEST = 150_000
# Layout shift without input, as Core Web Vitals define it; the observer sees shifts from before its start.
SHIFT = """() => new Promise((resolve) => {
  let sum = 0;
  new PerformanceObserver((list) => list.getEntries().forEach((one) => (sum += one.hadRecentInput ? 0 : one.value)))
    .observe({ type: "layout-shift", buffered: true });
  requestAnimationFrame(() => requestAnimationFrame(() => resolve(sum)));
})"""


def test_lists_are_light_steady_and_accessible(
    chat_server: Server, visitor: Visitor, axe: str, subtests: pytest.Subtests
) -> None:
    for _ in range(3):
        chat_server.ask(model="chat", input="greetings")
    page = visitor.page
    page.context.new_cdp_session(page).send("Network.setCacheDisabled", {"cacheDisabled": True})
    page.add_init_script(axe)
    fetched: list[Response] = []
    page.on("response", lambda one: fetched.append(one))
    paths = ["", *(f"responses_app/{name}/" for name in LISTS), "auth/user/"]
    for path in paths:
        with subtests.test(path=path):
            fetched.clear()
            page.goto(f"{chat_server.url}/admin/{path}", wait_until="networkidle")
            expect(page.get_by_role("navigation", name="Main").get_by_role("link", name="Admin")).to_have_attribute(
                "aria-current", "page"
            )
            if path == "auth/user/":
                expect(page.get_by_role("heading", level=1)).to_have_text("Users")
            # Counts of the filters would read whole tables.
            expect(page.get_by_text("Show counts")).to_have_count(0)
            sizes = {one.url: len(one.body()) for one in fetched if one.status == 200}
            if path.startswith("responses_app") and path.count("/") == 2:
                assert sum(sizes.values()) < LARGEST, sizes
            assert page.evaluate(SHIFT) < 0.01
            registered = violations_on_screens(page, axe)
            assert not registered, json.dumps(registered, indent=1)


def test_the_search_of_an_account_has_a_name(chat_server: Server, visitor: Visitor) -> None:
    visitor.page.goto(f"{chat_server.url}/admin/responses_app/membership/add/", wait_until="networkidle")
    search = visitor.page.get_by_role("combobox", name="Choose a user")
    search.focus()
    search.press("Enter")
    visitor.page.get_by_role("option", name="operator").click()
    expect(visitor.page.get_by_role("combobox", name="operator")).to_be_visible()


def test_the_inputs_of_a_key_fit_a_phone(chat_server: Server, visitor: Visitor) -> None:
    visitor.page.set_viewport_size({"width": 390, "height": 844})
    visitor.page.goto(f"{chat_server.url}/admin/responses_app/apikey/1/change/")
    expect(visitor.page.locator("#id_allowed_models")).to_be_visible()
    wide = "inputs => inputs.filter(one => one.getBoundingClientRect().right > innerWidth - 16).map(one => one.name)"
    assert visitor.page.locator(".form-row input").evaluate_all(wide) == []


def test_a_long_project_moves_no_outcome_of_the_audit_log_out_of_view(chat_server: Server, visitor: Visitor) -> None:
    page = visitor.page
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(f"{chat_server.url}/admin/responses_app/auditentry/")
    name = "Research and development of the northern branch office, department of measurements, second floor"
    page.locator(".field-project").first.evaluate("(cell, name) => (cell.textContent = name)", name)
    assert page.locator(".results").evaluate("box => box.scrollWidth - box.clientWidth") == 0


def test_a_selection_cancels_responses_without_jquery(chat_server: Server, visitor: Visitor) -> None:
    chat_server.ask(model="chat", input="greetings")
    page = visitor.page
    page.goto(f"{chat_server.url}/admin/responses_app/response/")
    page.get_by_role("checkbox", name="Select all objects on this page for an action").check()
    expect(page.locator("#result_list .action-select:not(:checked)")).to_have_count(0)
    expect(page.locator(".action-counter")).to_contain_text("selected")
